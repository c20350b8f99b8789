#include "gpuqd/flow/copies/target_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gpuqd/net/s3.h"
#include "gpuqd/net/s3_presign.h"
#include "gpuqd/store/digest.h"
#include "libgpuq/grow.h"

int target_new(const struct backup_plan *p, const char *scratch, const atomic_bool *stop,
	       struct target **out, struct gpuq_err *err)
{
	const struct s3_opts s3 = { .url = p->to,
				    .style = p->s3.style,
				    .region = p->s3.region,
				    .credentials = p->s3.credentials,
				    .ca = p->s3.ca,
				    .section = p->section,
				    .timeout_us = p->timeout_us,
				    .stop = stop };
	struct target *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return gpuq_no_memory(err);
	t->plan = *p;
	t->scratch = scratch;
	t->stop = stop;
	if (getrandom(&t->mark, sizeof(t->mark), 0) != (ssize_t)sizeof(t->mark)) {
		free(t);
		return gpuq_fail(err, GPUQ_EIO, "no random numbers");
	}
	t->ops = backup_plan_is_s3(p) ? &target_s3_ops
		 : p->to              ? &target_dir_ops
				      : &target_command_ops;
	rc = backup_plan_is_s3(p) ? s3_new(&s3, &t->s3, err) : 0;
	if (rc < 0) {
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void target_free(struct target *t)
{
	if (t)
		s3_free(t->s3);
	free(t);
}

const char *target_text(const struct target *t)
{
	return t->plan.to ? t->plan.to : t->plan.command.items[0];
}

bool target_ends(const struct target *t)
{
	return t->stop && atomic_load(t->stop);
}

/* ---- lists ---- */

int target_list_add(struct target_list *l, const char *name, int64_t bytes, struct gpuq_err *err)
{
	struct target_item *it;

	if (strlen(name) >= NAMES_BYTES)
		return 0; /* none of ours */
	if (!grow_to(&l->items, &l->room, l->n + 1))
		return gpuq_no_memory(err);
	it = &l->items[l->n++];
	snprintf(it->name, sizeof(it->name), "%s", name);
	it->bytes = bytes;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct target_item *)a)->name, ((const struct target_item *)b)->name);
}

int target_list(struct target *t, const char *prefix, struct target_list *out, struct gpuq_err *err)
{
	struct target_list l = { .items = NULL };
	int rc = t->ops->list(t, prefix, &l, err);

	if (rc < 0) {
		target_list_done(&l);
		return rc;
	}
	if (l.n)
		qsort(l.items, l.n, sizeof(*l.items), by_name);
	*out = l;
	return 0;
}

void target_list_done(struct target_list *l)
{
	free(l->items);
	*l = (struct target_list){ .items = NULL };
}

const struct target_item *target_find(const struct target_list *l, const char *name)
{
	struct target_item key;

	snprintf(key.name, sizeof(key.name), "%s", name);
	return l->n ? bsearch(&key, l->items, l->n, sizeof(*l->items), by_name) : NULL;
}

/* ---- bytes ---- */

int target_scratch(const struct target *t, struct gpuq_err *err)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%.4000s/copy-XXXXXX", t->scratch);
	fd = mkstemp(path);
	if (fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	unlink(path); /* however this ends, nothing is left behind */
	return fd;
}

int target_has_room(struct target *t, int64_t bytes, struct gpuq_err *err)
{
	return t->ops->has_room ? t->ops->has_room(t, bytes, err) : 0;
}

int target_put(struct target *t, const char *name, int fd, const char *sha256, bool replace,
	       struct gpuq_err *err)
{
	return t->ops->put(t, name, fd, sha256, replace, err);
}

int target_put_text(struct target *t, const char *name, const struct gpuq_buf *text,
		    struct gpuq_err *err)
{
	char hex[DIGEST_HEX_BYTES];
	int fd, rc;

	if (text->failed)
		return gpuq_no_memory(err);
	fd = target_scratch(t, err);
	if (fd < 0)
		return fd;
	if (write(fd, text->data, text->len) != (ssize_t)text->len)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", t->scratch, strerror(errno));
	else
		rc = digest_file(fd, -1, hex, NULL, err);
	if (rc == 0)
		rc = target_put(t, name, fd, hex, true, err);
	close(fd);
	return rc;
}

int target_open(struct target *t, const char *name, int *fd, struct gpuq_err *err)
{
	return t->ops->open(t, name, fd, err);
}

int target_get_text(struct target *t, const char *name, size_t max, struct gpuq_buf *out,
		    struct gpuq_err *err)
{
	char chunk[4096];
	int64_t at = 0;
	ssize_t n;
	int fd = -1, rc = target_open(t, name, &fd, err);

	if (rc < 0)
		return rc;
	out->max_bytes = max;
	while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0 && !out->failed) {
		gpuq_buf_add(out, chunk, (size_t)n);
		at += n;
	}
	if (n < 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", name, strerror(errno));
	else if (out->failed)
		rc = gpuq_fail(err, GPUQ_ETOOBIG, "%s: more than %zu bytes", name, max);
	close(fd);
	return rc;
}

int target_remove(struct target *t, const char *name, struct gpuq_err *err)
{
	return t->ops->remove(t, name, err);
}

int target_presign(const struct target *t, const char *name, int64_t valid_s, struct gpuq_buf *out,
		   struct gpuq_err *err)
{
	return t->s3 ? s3_presign(t->s3, name, valid_s, out, err)
		     : gpuq_fail(err, GPUQ_EINVAL, "%s is no object store", target_text(t));
}
