#include "gpuqd/flow/copies/restore.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/flow/copies/shelf.h"
#include "gpuqd/store/place.h"
#include "gpuqd/store/read.h"
#include "gpuqd/store/replay.h"
#include "gpuqd/store/upgrade.h"
#include "gpuqd/util/varint.h"
#include "libgpuq/units.h"

#define ANY_CLUSTER "gpuq-"
#define LOCAL_DIR "local" /* of the state directory: one entry for each pod of the local cluster */

struct restoring {
	const struct restore_opts *o;
	struct restored *out;
	/* what is requested */
	bool has_time, has_position;
	struct replay_until until;
	uint32_t epoch; /* of the position */
	/* where it is */
	struct target *target;
	struct backup_plan plan; /* of the target */
	char dir[PATH_MAX];
	const char *name; /* of one copy; NULL = choose */
	char prefix[NAMES_PREFIX_BYTES];
	struct shelf shelf;
	struct shelf_copy copy;
	int fd;
};

/* ---- what is requested ---- */

static int read_at(struct restoring *r, struct gpuq_err *err)
{
	const char *at = r->o->at;
	int n = 0;

	r->until = (struct replay_until){ INT64_MAX, UINT64_MAX };
	if (!at)
		return 0;
	if (sscanf(at, "%10" SCNu32 "/%20" SCNu64 "%n", &r->epoch, &r->until.seq, &n) == 2 &&
	    !at[n]) {
		r->has_position = true;
		return 0;
	}
	if (gpuq_instant_parse(at, clock_us(CLOCK_REALTIME), &r->until.at_us, err) < 0)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"--at %s: expected a time such as 2026-12-01T09:00Z, or a position such "
			"as 1/1234, as gpuq backup list prints them",
			at);
	r->has_time = true;
	return 0;
}

/* DIR/NAME, of files or of objects */
static int split(struct restoring *r, const char *path, struct gpuq_err *err)
{
	const char *slash = strrchr(path, '/');
	const size_t n = slash ? (size_t)(slash - path) : 0;

	if (n >= sizeof(r->dir))
		return gpuq_fail(err, GPUQ_EINVAL, "%.100s...: too long", path);
	if (slash && n == 0)
		snprintf(r->dir, sizeof(r->dir), "/");
	else if (slash)
		snprintf(r->dir, sizeof(r->dir), "%.*s", (int)n, path);
	else
		snprintf(r->dir, sizeof(r->dir), ".");
	r->name = slash ? slash + 1 : path;
	r->plan.to = r->dir;
	r->plan.command.n = 0;
	return 0;
}

/* One copy, or where copies are; in the style and with the credentials of gpuqd.yaml. */
static int find_object(struct restoring *r, const char *url, struct gpuq_err *err)
{
	const size_t n = strlen(url), end = strlen(NAMES_COPY);

	if (n > end && strcmp(url + n - end, NAMES_COPY) == 0)
		return split(r, url, err);
	r->plan.to = url;
	r->plan.command.n = 0;
	return 0;
}

static int find_source(struct restoring *r, struct gpuq_err *err)
{
	const char *source = r->o->source;
	struct stat st;

	r->plan = *r->o->plan;
	if (strcmp(source, RESTORE_FROM_TARGET) == 0)
		return backup_plan_is_set(&r->plan)
			       ? 0
			       : gpuq_fail(err, GPUQ_EINVAL,
					   "--restore " RESTORE_FROM_TARGET
					   ": gpuqd.yaml has no backup; a file of that name is "
					   "./" RESTORE_FROM_TARGET);
	if (strncmp(source, "https://", 8) == 0)
		return find_object(r, source, err);
	if (stat(source, &st) != 0)
		return gpuq_fail(err, GPUQ_ENOENT, "%s: %s", source, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return split(r, source, err);
	r->plan.to = source;
	r->plan.command.n = 0;
	return 0;
}

/* ---- which cluster ---- */

/* "gpuq-ID-" of a name; false: it is no name of a copy. */
static bool prefix_of(const char *name, char out[NAMES_PREFIX_BYTES])
{
	const char *end =
		strncmp(name, ANY_CLUSTER, strlen(ANY_CLUSTER)) == 0 ? strrchr(name, '-') : NULL;
	struct stamp s;

	if (!end || end - name + 1 >= NAMES_PREFIX_BYTES ||
	    end - name < (ptrdiff_t)strlen(ANY_CLUSTER))
		return false;
	snprintf(out, NAMES_PREFIX_BYTES, "%.*s", (int)(end - name + 1), name);
	return names_read_copy(out, name, &s);
}

static int find_cluster(struct restoring *r, struct gpuq_err *err)
{
	struct target_list l = { .items = NULL };
	char one[NAMES_PREFIX_BYTES];
	int rc = target_list(r->target, ANY_CLUSTER, &l, err);

	for (size_t i = 0; rc == 0 && i < l.n; i++) {
		if (!prefix_of(l.items[i].name, one) || strcmp(one, r->prefix) == 0)
			continue;
		if (*r->prefix)
			rc = gpuq_fail(
				err, GPUQ_ECONFLICT,
				"%s has copies of several clusters, %s... and %s...: name one of "
				"the files, --restore FILE",
				target_text(r->target), r->prefix, one);
		memcpy(r->prefix, one, sizeof(one));
	}
	if (rc == 0 && !*r->prefix)
		rc = gpuq_fail(err, GPUQ_ENOENT, "%s has no copy, gpuq-CLUSTER-TIME.mdb",
			       target_text(r->target));
	target_list_done(&l);
	return rc;
}

/* Jobs of another cluster run here: their pods would never be known. */
static int check_here(const struct restoring *r, const char *cluster, struct gpuq_err *err)
{
	char path[PATH_MAX], ours[NAMES_PREFIX_BYTES];
	struct dirent *e;
	DIR *d;
	int rc = 0;

	names_prefix(cluster, ours);
	snprintf(path, sizeof(path), "%.4000s/" LOCAL_DIR, r->o->state);
	d = opendir(path);
	while (d && rc == 0 && (e = readdir(d)))
		if (strncmp(e->d_name, ANY_CLUSTER, strlen(ANY_CLUSTER)) == 0 &&
		    strncmp(e->d_name, ours, strlen(ours)) != 0)
			rc = gpuq_fail(
				err, GPUQ_ECONFLICT,
				"%s/%s is of another cluster than the backup, which is of %s: "
				"restore the backup of that cluster, or end its jobs and move "
				"the directory away",
				path, e->d_name, cluster);
	if (d)
		closedir(d);
	return rc;
}

/* ---- which copy ---- */

static bool is_newer(const struct shelf_copy *a, const struct shelf_copy *b)
{
	const struct store_identity *x = &a->manifest.id, *y = &b->manifest.id;

	if (a->sealed != b->sealed)
		return a->sealed;
	if (a->sealed && (x->epoch != y->epoch || x->seq != y->seq))
		return x->epoch != y->epoch ? x->epoch > y->epoch : x->seq > y->seq;
	return stamp_us(&a->stamp) > stamp_us(&b->stamp);
}

static bool is_before(const struct restoring *r, const struct shelf_copy *c)
{
	const struct manifest *m = &c->manifest;

	if (r->has_position)
		return c->sealed && m->id.epoch == r->epoch && m->id.seq <= r->until.seq;
	return (c->sealed ? m->time_us : stamp_us(&c->stamp)) <= r->until.at_us;
}

static int choose(struct restoring *r, struct gpuq_err *err)
{
	const struct shelf_copy *best = r->name ? shelf_find(&r->shelf, r->name) : NULL;

	if (r->name && !best)
		return gpuq_fail(err, GPUQ_ENOENT, "%s/%s: no such copy", target_text(r->target),
				 r->name);
	if (best && !is_before(r, best))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "--at %s is before %s: name an earlier copy, or the directory",
				 r->o->at, r->name);
	for (size_t i = 0; !r->name && i < r->shelf.n; i++)
		if (is_before(r, &r->shelf.items[i]) &&
		    (!best || is_newer(&r->shelf.items[i], best)))
			best = &r->shelf.items[i];
	if (!best)
		return gpuq_fail(err, GPUQ_ENOENT, "%s has no copy before %s: the oldest is %s",
				 target_text(r->target), r->o->at,
				 r->shelf.n ? r->shelf.items[r->shelf.n - 1].name : "none");
	r->copy = *best;
	return 0;
}

static int damaged(const struct restoring *r, const char *what, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "%s/%s: %s: restore an earlier copy, by its name with --at or --at alone",
			 target_text(r->target), r->copy.name, what);
}

static int fetch(struct restoring *r, struct gpuq_err *err)
{
	const struct manifest *m = &r->copy.manifest;
	char hex[DIGEST_HEX_BYTES];
	int64_t bytes = 0;
	int rc = target_open(r->target, r->copy.name, &r->fd, err);

	if (rc < 0 || !r->copy.sealed)
		return rc;
	rc = digest_file(r->fd, -1, hex, &bytes, err);
	if (rc < 0)
		return rc;
	if (bytes < m->bytes)
		return damaged(r, "cut short", err);
	return strcmp(hex, m->sha256) == 0
		       ? 0
		       : damaged(r, "its SHA-256 does not match its manifest", err);
}

/* ---- segments ---- */

static int replay_one(struct restoring *r, struct replay *p, const struct segment_name *seg,
		      bool *done, struct gpuq_err *err)
{
	const struct store_identity at = store_replay_position(p);
	struct gpuq_err why = GPUQ_ERR_INIT;
	char name[NAMES_BYTES];
	int fd = -1, rc;

	names_segment(r->prefix, seg, name);
	rc = target_open(r->target, name, &fd, &why);
	if (rc == 0)
		rc = store_replay(p, fd, &r->until, done, &why);
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		r->out->n_segments++;
	if (rc < 0)
		return gpuq_fail(err, rc,
				 "%s/%s: %s: --at %" PRIu32 "/%" PRIu64
				 " restores everything before it",
				 target_text(r->target), name, why.text, at.epoch, at.seq);
	return 0;
}

static int replay_all(struct restoring *r, struct replay *p, struct gpuq_err *err)
{
	const struct store_identity is = store_replay_position(p);
	struct segment_name *all = NULL;
	size_t n = 0;
	bool done = false;
	int rc = shelf_segments(&r->shelf, &is, &all, &n, err);

	for (size_t i = 0; rc == 0 && !done && i < n; i++)
		if (all[i].span.last > store_replay_position(p).seq &&
		    store_replay_position(p).seq < r->until.seq &&
		    stamp_us(&all[i].stamp) <= r->until.at_us)
			rc = replay_one(r, p, &all[i], &done, err);
	free(all);
	return rc;
}

/* A file without --at is restored as it is. */
static bool wants_segments(const struct restoring *r)
{
	return *r->prefix && (r->o->at || !r->name) &&
	       (!r->copy.sealed || r->copy.manifest.schema == STORE_SCHEMA);
}

static int cluster_of(const struct replay *p, char out[MANIFEST_CLUSTER_BYTES],
		      struct gpuq_err *err)
{
	struct gpuq_buf val = GPUQ_BUF_INIT;
	struct rec rec;
	size_t n = 0;
	const char *s;
	int rc = store_get(store_replay_store(p), TABLE_META, "model", 5, &val, err);

	rec = (struct rec){ (const unsigned char *)val.data,
			    (const unsigned char *)val.data + val.len, false };
	if (rc == 0) {
		rec_get_array(&rec);
		s = rec_get_str(&rec, &n);
		snprintf(out, MANIFEST_CLUSTER_BYTES, "%.*s", s ? (int)n : 0, s ? s : "");
	}
	gpuq_buf_done(&val);
	return rc;
}

/* The new file is whole, and not yet the database. */
static int amend(void *arg, const char *path, struct gpuq_err *err)
{
	struct restoring *r = arg;
	char cluster[MANIFEST_CLUSTER_BYTES] = "";
	struct replay *p = NULL;
	int rc = store_replay_begin(path, r->o->store->map_bytes, &p, err), end;

	if (rc < 0)
		return rc;
	rc = cluster_of(p, cluster, err);
	if (rc == 0)
		rc = check_here(r, cluster, err);
	if (rc == 0 && wants_segments(r))
		rc = replay_all(r, p, err);
	r->out->position = store_replay_position(p);
	r->out->time_us = store_replay_time(p);
	if (rc == 0 && r->has_position && r->out->position.seq != r->until.seq)
		rc = gpuq_fail(err, GPUQ_ENOENT,
			       "--at %s: the backup reaches no further than %" PRIu32 "/%" PRIu64,
			       r->o->at, r->out->position.epoch, r->out->position.seq);
	end = store_replay_end(p, rc == 0 ? err : NULL);
	return rc == 0 ? end : rc;
}

/* ---- all of it ---- */

static int restore_set(struct restoring *r, struct gpuq_err *err)
{
	char path[64];
	int rc = *r->prefix ? 0 : find_cluster(r, err);

	if (rc == 0)
		rc = shelf_read(r->target, r->prefix, NULL, &r->shelf, err);
	if (rc == 0)
		rc = choose(r, err);
	if (rc == 0)
		rc = fetch(r, err);
	if (rc < 0)
		return rc;
	snprintf(r->out->file, sizeof(r->out->file), "%.200s/%s", target_text(r->target),
		 r->copy.name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
	return store_restore(r->o->state, path, r->o->store, amend, r, err);
}

static int restore_file(struct restoring *r, struct gpuq_err *err)
{
	if (r->o->at)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"--at needs a copy that gpuqd made by itself, gpuq-CLUSTER-TIME.mdb, with "
			"its segments beside it; %s is not one",
			r->o->source);
	snprintf(r->out->file, sizeof(r->out->file), "%.500s", r->o->source);
	return store_restore(r->o->state, r->o->source, r->o->store, amend, r, err);
}

/* A file that gpuq backup wrote and others put there. */
static int restore_object(struct restoring *r, struct gpuq_err *err)
{
	char path[64];
	int rc = r->o->at ? restore_file(r, err) : target_open(r->target, r->name, &r->fd, err);

	if (rc < 0)
		return rc;
	snprintf(r->out->file, sizeof(r->out->file), "%.500s", r->o->source);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
	return store_restore(r->o->state, path, r->o->store, amend, r, err);
}

int copies_restore(const struct restore_opts *o, struct restored *out, struct gpuq_err *err)
{
	struct restoring r = { .o = o, .out = out, .fd = -1 };
	int rc;

	*out = (struct restored){ .file = "" };
	rc = read_at(&r, err);
	if (rc == 0)
		rc = find_source(&r, err);
	/* Fetched files are put there, and not before it is known that there is no database. */
	if (rc == 0)
		rc = store_restore_place(o->state, err);
	if (rc == 0)
		rc = target_new(&r.plan, o->state, NULL, &r.target, err);
	if (rc == 0 && (!r.name || prefix_of(r.name, r.prefix)))
		rc = restore_set(&r, err);
	else if (rc == 0)
		rc = backup_plan_is_s3(&r.plan) ? restore_object(&r, err) : restore_file(&r, err);
	if (r.fd >= 0)
		close(r.fd);
	shelf_done(&r.shelf);
	target_free(r.target);
	return rc;
}
