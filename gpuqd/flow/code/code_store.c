#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "gpuqd/flow/code/code_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/flow/code/code_dir.h"
#include "gpuqd/flow/code/codes.h"
#include "gpuqd/flow/copies/target.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec.h"
#include "libgpuq/units.h"

#define MARK_S3 ".s3"
#define MARK_DIR ".dir"
#define PART ".part" /* of an archive that arrives */
#define PREFIX "code-"
#define CA_BYTES_MAX (256u << 10)
#define FILE_BYTES (CODES_NAME_BYTES + 8)
#define OBJECT_BYTES (sizeof(PREFIX) + CODES_NAME_BYTES)

struct code_store {
	struct code_store_plan plan;
	struct target *target; /* NULL = a directory */
	const char *mark;
	struct worker *worker;
	int dir_fd;
	atomic_bool stop;
	char *ca;
	/* An object is put, or removed, but not both at once. */
	pthread_mutex_t lock;
	bool sweeping;
	struct gpuq_err sweep_err;
};

static void file_of(const char *name, const char *end, char out[FILE_BYTES])
{
	snprintf(out, FILE_BYTES, "%.*s%s", CODES_NAME_BYTES, name, end);
}

static void object_of(const char *name, char out[OBJECT_BYTES])
{
	snprintf(out, OBJECT_BYTES, PREFIX "%.*s", CODES_NAME_BYTES - 1, name);
}

static bool is_there(const struct code_store *s, const char *name, const char *end)
{
	char file[FILE_BYTES];

	file_of(name, end, file);
	return faccessat(s->dir_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- start and end ---- */

static int read_ca(struct code_store *s, struct gpuq_err *err)
{
	const char *path = s->plan.s3.ca;
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return gpuq_fail(err, GPUQ_EINVAL, "code_store.s3.ca: %s: %s", path,
				 strerror(errno));
	s->ca = malloc(CA_BYTES_MAX + 1);
	n = s->ca ? fread(s->ca, 1, CA_BYTES_MAX + 1, f) : 0;
	fclose(f);
	if (!s->ca)
		return gpuq_no_memory(err);
	if (n > CA_BYTES_MAX || memchr(s->ca, '\0', n))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "code_store.s3.ca: %s: expected at most %u KiB of PEM", path,
				 CA_BYTES_MAX >> 10);
	s->ca[n] = '\0';
	return 0;
}

static int open_dir(struct code_store *s, const char *state, struct gpuq_err *err)
{
	char *path = NULL;

	if (asprintf(&path, "%s/code", state) < 0)
		return gpuq_no_memory(err);
	s->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->dir_fd < 0)
		gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	free(path);
	return s->dir_fd < 0 ? GPUQ_EIO : 0;
}

/* A directory that is not there would be noticed by the first user. */
static int check_place(const char *dir, struct gpuq_err *err)
{
	const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
		gpuq_fail(err, GPUQ_EINVAL, "code_store.to: %s: %s", dir, strerror(errno));
		if (fd >= 0)
			close(fd);
		return err->code;
	}
	close(fd);
	return 0;
}

int code_store_new(struct loop *l, const struct code_store_plan *p, const char *state,
		   struct code_store **out, struct gpuq_err *err)
{
	const struct backup_plan plan = {
		.to = p->to, .s3 = p->s3, .section = "code_store", .timeout_us = p->timeout_us
	};
	struct code_store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return gpuq_no_memory(err);
	s->plan = *p;
	s->dir_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	s->mark = *p->to == '/' ? MARK_DIR : MARK_S3;
	rc = open_dir(s, state, err);
	if (rc == 0 && *p->to == '/')
		rc = check_place(p->to, err);
	else if (rc == 0)
		rc = target_new(&plan, state, &s->stop, &s->target, err);
	if (rc == 0 && p->s3.ca)
		rc = read_ca(s, err);
	if (rc == 0)
		rc = worker_new(l, &s->worker, err);
	if (rc < 0)
		code_store_free(s);
	else
		*out = s;
	return rc;
}

void code_store_stop(struct code_store *s)
{
	if (s)
		atomic_store(&s->stop, true);
}

static void dropped(void *arg)
{
	(void)arg;
}

void code_store_free(struct code_store *s)
{
	if (!s)
		return;
	code_store_stop(s);
	worker_free(s->worker, dropped);
	if (s->target)
		target_free(s->target);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	pthread_mutex_destroy(&s->lock);
	free(s->ca);
	free(s);
}

const char *code_store_ca(const struct code_store *s)
{
	return s->ca;
}

/* ---- putting ---- */

/* From here on the object may be there, whatever happens. */
static int make_mark(struct code_store *s, const char *name, struct gpuq_err *err)
{
	char file[FILE_BYTES];
	int fd;

	file_of(name, s->mark, file);
	fd = openat(s->dir_fd, file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fsync(fd) != 0 || fsync(s->dir_fd) != 0) {
		gpuq_fail(err, errno == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO, "%s: %s", file,
			  strerror(errno));
		if (fd >= 0)
			close(fd);
		return err->code;
	}
	close(fd);
	return 0;
}

static int put(void *arg, const char *name, const char *sha256, int fd, struct gpuq_err *err)
{
	struct code_store *s = arg;
	char object[OBJECT_BYTES];
	int rc;

	object_of(name, object);
	pthread_mutex_lock(&s->lock);
	rc = make_mark(s, name, err);
	(void)FAILPOINT("code_store.put");
	if (rc == 0)
		rc = s->target ? target_put(s->target, object, fd, sha256, true, err)
			       : code_dir_put(s->plan.to, object, fd, err);
	pthread_mutex_unlock(&s->lock);
	/* The client hears of it, and its connection to gpuqd is well. */
	if (rc < 0 && rc != GPUQ_ENOMEM)
		rc = err->code = GPUQ_EIO;
	return rc;
}

static bool has(void *arg, const char *name)
{
	const struct code_store *s = arg;

	return is_there(s, name, s->mark);
}

void code_store_outside(struct code_store *s, struct codes_outside *out)
{
	*out = (struct codes_outside){
		.arg = s, .above_bytes = GPUQ_CODE_CONFIG_MAP_BYTES, .put = put, .has = has
	};
}

static int find(const struct code_store *s, const char *user, const char *digest,
		char name[CODES_NAME_BYTES], struct gpuq_err *err)
{
	codes_name(user, digest, name);
	if (is_there(s, name, s->mark))
		return 0;
	return gpuq_fail(err, GPUQ_ENOENT,
			 "the code of the job is not in code_store: submit it again");
}

bool code_store_is_volume(const struct code_store *s)
{
	return !s->target;
}

int code_store_volume(const struct code_store *s, const char *user, const char *digest,
		      struct gpuq_arena *a, struct gpuq_volume **out, struct gpuq_err *err)
{
	const struct gpuq_volume *from = s->plan.volume;
	char name[CODES_NAME_BYTES], object[OBJECT_BYTES];
	struct gpuq_volume *v;
	int rc = find(s, user, digest, name, err);

	if (rc < 0)
		return rc;
	object_of(name, object);
	v = gpuq_arena_alloc(a, sizeof(*v));
	if (!v)
		return gpuq_no_memory(err);
	*v = *from;
	v->sub_path = gpuq_arena_printf(a, "%s%s%s", from->sub_path ? from->sub_path : "",
					from->sub_path ? "/" : "", object);
	if (!v->sub_path)
		return gpuq_no_memory(err);
	*out = v;
	return 0;
}

int code_store_url(struct code_store *s, const char *user, const char *digest, struct gpuq_arena *a,
		   const char **url, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	char name[CODES_NAME_BYTES], object[OBJECT_BYTES];
	int rc;

	rc = find(s, user, digest, name, err);
	if (rc < 0)
		return rc;
	object_of(name, object);
	rc = target_presign(s->target, object, s->plan.valid_us / GPUQ_US_PER_S, &text, err);
	if (rc == 0) {
		*url = gpuq_arena_strdup(a, gpuq_buf_str(&text));
		rc = *url ? 0 : gpuq_no_memory(err);
	}
	gpuq_buf_done(&text);
	return rc;
}

/* ---- removing ---- */

/* The archive has gone for good: one that arrives again would have its part there. */
static int remove_one(struct code_store *s, const char *name, struct gpuq_err *err)
{
	char object[OBJECT_BYTES], file[FILE_BYTES];
	int rc = 0;

	object_of(name, object);
	file_of(name, s->mark, file);
	pthread_mutex_lock(&s->lock);
	if (!is_there(s, name, "") && !is_there(s, name, PART)) {
		rc = s->target ? target_remove(s->target, object, err)
			       : code_dir_remove(s->plan.to, object, err);
		if (rc == 0)
			unlinkat(s->dir_fd, file, 0);
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* The name of an archive whose mark this is. */
static bool name_of_mark(const struct code_store *s, const char *file, char out[CODES_NAME_BYTES])
{
	const size_t n = strlen(file), end = strlen(s->mark);

	if (n <= end || strcmp(file + n - end, s->mark) != 0 || n - end >= CODES_NAME_BYTES)
		return false;
	memcpy(out, file, n - end);
	out[n - end] = '\0';
	return true;
}

static void sweep(void *arg)
{
	struct code_store *s = arg;
	const int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	char name[CODES_NAME_BYTES];
	struct dirent *e;
	int rc = 0;

	s->sweep_err = (struct gpuq_err)GPUQ_ERR_INIT;
	if (!dir && fd >= 0)
		close(fd);
	while (rc == 0 && dir && (e = readdir(dir)))
		if (name_of_mark(s, e->d_name, name) && !is_there(s, name, ""))
			rc = remove_one(s, name, &s->sweep_err);
	if (dir)
		closedir(dir);
}

static void swept(void *arg)
{
	struct code_store *s = arg;

	s->sweeping = false;
	if (*s->sweep_err.text && !atomic_load(&s->stop))
		log_warn("code.not_removed", "to=%s error=%s",
			 LOGS(s->target ? target_text(s->target) : s->plan.to),
			 LOGS(s->sweep_err.text));
}

void code_store_sweep(struct code_store *s)
{
	if (s->sweeping)
		return;
	s->sweeping = true;
	if (worker_run(s->worker, sweep, swept, s, NULL) < 0)
		s->sweeping = false;
}
