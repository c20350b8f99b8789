#include "gpuqd/flow/report/backup_rota.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/flow/backup.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/store/ballast.h"
#include "gpuqd/store/copy.h"
#include "gpuqd/util/civil.h"
#include "libgpuq/units.h"

#define RETRY_US (60 * GPUQ_US_PER_S)
#define STAMP_LEN (sizeof("YYYYMMDDTHHMMSSZ") - 1)
#define HOUR_LEN 11 /* of a stamp, up to its hour */
#define DAY_LEN 8
#define PREFIX_BYTES 96

struct backup_rota {
	struct journal *j;
	struct worker *worker;
	struct loop_timer *timer;
	struct backup_plan plan;
	char prefix[PREFIX_BYTES]; /* gpuq-CLUSTER_ID- */
	/* of the copy under way: the thread's until it is done */
	int64_t begun_us;
	char path[PATH_MAX];
	int64_t bytes;
	size_t n_deleted;
	int64_t newest_us; /* stamp of the newest copy in the folder; 0 = none */
	bool make; /* false: look only when the next one is due */
	int rc;
	struct gpuq_err err;
};

struct stamp {
	char text[STAMP_LEN + 1];
};

/* ---- names ---- */

static void stamp_write(int64_t us, struct stamp *out)
{
	const int64_t day = civil_day(us);
	const struct civil_date d = civil_date(day);
	const unsigned s = (unsigned)((us - day * CIVIL_DAY_US) / GPUQ_US_PER_S);

	snprintf(out->text, sizeof(out->text), "%04u%02u%02uT%02u%02u%02uZ",
		 (unsigned)d.year % 10000, (unsigned)d.month % 100, (unsigned)d.day % 100,
		 s / 3600 % 100, s / 60 % 60, s % 60);
}

static int digits(const char *s, size_t n)
{
	int v = 0;

	for (size_t i = 0; i < n; i++)
		v = v * 10 + (s[i] - '0');
	return v;
}

static int64_t stamp_us(const struct stamp *s)
{
	const char *t = s->text;
	const struct civil_date d = { digits(t, 4), digits(t + 4, 2), digits(t + 6, 2) };

	return civil_from_date(d) * CIVIL_DAY_US +
	       (digits(t + 9, 2) * 3600 + digits(t + 11, 2) * 60 + digits(t + 13, 2)) *
		       GPUQ_US_PER_S;
}

/* A name that only resembles one belongs to a file of another origin, which stays. */
static bool stamp_read(const char *prefix, const char *name, struct stamp *out)
{
	const size_t n = strlen(prefix);
	const char *s = name + n;

	if (strncmp(name, prefix, n) != 0 || strlen(s) != STAMP_LEN + 4 ||
	    strcmp(s + STAMP_LEN, ".mdb") != 0)
		return false;
	for (size_t i = 0; i < STAMP_LEN; i++)
		if (i == 8 ? s[i] != 'T' : i == 15 ? s[i] != 'Z' : s[i] < '0' || s[i] > '9')
			return false;
	memcpy(out->text, s, STAMP_LEN);
	out->text[STAMP_LEN] = '\0';
	return true;
}

/* ---- the folder; on the thread, because a folder may be far away and hang ---- */

static int newest_first(const void *a, const void *b)
{
	return strcmp(((const struct stamp *)b)->text, ((const struct stamp *)a)->text);
}

/* True for the file of a copy that ended with its daemon. */
static bool is_left_over(const struct backup_rota *k, const char *name)
{
	const size_t n = strlen(name);

	return name[0] == '.' && strncmp(name + 1, k->prefix, strlen(k->prefix)) == 0 && n > 5 &&
	       strcmp(name + n - 5, ".part") == 0;
}

/* The copies there are, the newest first; leftovers are deleted. */
static int list(struct backup_rota *k, DIR *d, struct stamp **out, size_t *n_out)
{
	struct stamp *all = NULL, s;
	size_t n = 0, room = 0;
	struct dirent *e;

	for (errno = 0; (e = readdir(d)); errno = 0) {
		if (is_left_over(k, e->d_name))
			unlinkat(dirfd(d), e->d_name, 0);
		if (!stamp_read(k->prefix, e->d_name, &s))
			continue;
		if (n == room) {
			struct stamp *more = realloc(all, (room + 256) * sizeof(*all));

			if (!more) {
				free(all);
				return gpuq_no_memory(&k->err);
			}
			all = more;
			room += 256;
		}
		all[n++] = s;
	}
	if (errno) {
		free(all);
		return gpuq_fail(&k->err, GPUQ_EIO, "%s: %s", k->plan.to, strerror(errno));
	}
	if (n)
		qsort(all, n, sizeof(*all), newest_first);
	*out = all;
	*n_out = n;
	return 0;
}

/* True for the last copy of one of the first `most` hours or days, counted from the newest. */
static bool is_kept(const struct stamp *all, size_t i, size_t len, int64_t most, int64_t *n)
{
	if (i && strncmp(all[i].text, all[i - 1].text, len) == 0)
		return false;
	return (*n)++ < most;
}

static void delete_old(struct backup_rota *k, DIR *d, const struct stamp *all, size_t n)
{
	int64_t n_hours = 0, n_days = 0;
	char name[PREFIX_BYTES + STAMP_LEN + 8];

	for (size_t i = 0; i < n; i++) {
		const bool hour = is_kept(all, i, HOUR_LEN, k->plan.keep.hourly, &n_hours);
		const bool day = is_kept(all, i, DAY_LEN, k->plan.keep.daily, &n_days);

		if (hour || day)
			continue;
		snprintf(name, sizeof(name), "%s%s.mdb", k->prefix, all[i].text);
		k->n_deleted += unlinkat(dirfd(d), name, 0) == 0;
	}
}

static int look_through(struct backup_rota *k, bool may_delete)
{
	DIR *d = opendir(k->plan.to);
	struct stamp *all = NULL;
	size_t n = 0;
	int rc;

	if (!d)
		return gpuq_fail(&k->err, GPUQ_EIO, "%s: %s", k->plan.to, strerror(errno));
	rc = list(k, d, &all, &n);
	if (rc == 0 && may_delete)
		delete_old(k, d, all, n);
	if (rc == 0)
		k->newest_us = n ? stamp_us(&all[0]) : 0;
	free(all);
	closedir(d);
	return rc;
}

/* The folder may be on the disk of the database, which a copy must not fill. */
static int has_room(struct backup_rota *k)
{
	struct store_stats s;
	struct statvfs v;
	int rc = store_stats(journal_store(k->j), &s, &k->err);
	uint64_t left;

	if (rc < 0)
		return rc;
	if (statvfs(k->plan.to, &v) != 0)
		return gpuq_fail(&k->err, GPUQ_EIO, "%s: %s", k->plan.to, strerror(errno));
	left = (uint64_t)v.f_bavail * v.f_frsize;
	if (left >= s.bytes + BALLAST_BYTES)
		return 0;
	return gpuq_fail(&k->err, GPUQ_ESTORAGE,
			 "%s: a copy takes up to %" PRIu64 " MiB, %" PRIu64 " MiB are free",
			 k->plan.to, s.bytes >> 20, left >> 20);
}

static int copy(struct backup_rota *k)
{
	struct backup *b = NULL;
	struct stamp s;
	int rc = has_room(k);

	stamp_write(k->begun_us, &s);
	snprintf(k->path, sizeof(k->path), "%s/%s%s.mdb", k->plan.to, k->prefix, s.text);
	if (rc == 0)
		rc = backup_new_at(k->j, k->path, &b, &k->err);
	if (rc == 0)
		rc = backup_make(b, &k->err);
	if (rc == 0)
		rc = backup_keep(b, &k->err);
	if (rc == 0)
		k->bytes = backup_bytes(b);
	backup_free(b);
	return rc;
}

static void work(void *arg)
{
	struct backup_rota *k = arg;

	k->n_deleted = 0;
	/* Leftovers first: they may be what takes the room. Old copies last: not before there is a
	 * newer one. */
	k->rc = look_through(k, false);
	if (k->rc == 0 && k->make)
		k->rc = copy(k);
	if (k->rc == 0 && k->make)
		k->rc = look_through(k, true);
}

/* ---- the schedule ---- */

static void due(void *arg);

static void done(void *arg)
{
	struct backup_rota *k = arg;
	struct loop *l = journal_loop(k->j);
	const int64_t every_us = k->plan.every_us;
	int64_t wait_us = every_us < RETRY_US ? every_us : RETRY_US;

	if (k->rc < 0)
		log_err("backup.failed", "to=%s error=%s", LOGS(k->plan.to), LOGS(k->err.text));
	else if (k->make)
		log_notice("backup.written", "file=%s bytes=%" PRId64 " deleted=%zu", LOGS(k->path),
			   k->bytes, k->n_deleted);
	if (k->rc == 0) {
		wait_us = k->newest_us ? k->newest_us + every_us - loop_wall_us(l) : 0;
		/* After a step of the clock the newest may be of a time that is yet to come. */
		if (wait_us > every_us)
			wait_us = every_us;
		if (wait_us < 0)
			wait_us = 0;
		k->make = true;
	}
	k->timer = loop_after(l, wait_us, due, k);
}

static void due(void *arg)
{
	struct backup_rota *k = arg;

	k->timer = NULL;
	k->err = (struct gpuq_err)GPUQ_ERR_INIT;
	k->begun_us = loop_wall_us(journal_loop(k->j));
	k->rc = worker_run(k->worker, work, done, k, &k->err);
	if (k->rc < 0)
		done(k);
}

int backup_rota_new(struct journal *j, const struct backup_plan *plan, const char *cluster_id,
		    struct backup_rota **out, struct gpuq_err *err)
{
	struct backup_rota *k;
	int rc;

	if (!plan->to)
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return gpuq_no_memory(err);
	k->j = j;
	k->plan = *plan;
	snprintf(k->prefix, sizeof(k->prefix), "gpuq-%s-", cluster_id);
	rc = worker_new(journal_loop(j), &k->worker, err);
	if (rc < 0) {
		free(k);
		return rc;
	}
	k->timer = loop_after(journal_loop(j), 0, due, k);
	*out = k;
	return 0;
}

static void dropped(void *arg)
{
	(void)arg;
}

void backup_rota_free(struct backup_rota *k)
{
	if (!k)
		return;
	loop_cancel(k->timer);
	worker_free(k->worker, dropped);
	free(k);
}
