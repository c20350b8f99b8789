#include "gpuqd/flow/logs/kept.h"

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/logs/kept_lines.h"
#include "libgpuq/base/write.h"
#include "libgpuq/grow.h"

#define SUFFIX ".times"
#define SUFFIX_OLD ".log" /* lines without times, of an older daemon */
#define PART ".part"
#define PIECE (64u << 10)
#define NAME_ROOM 100 /* of a pod's name and the suffixes */

struct kept {
	struct loop *l;
	int dir_fd;
};

struct kept_write {
	struct kept *k;
	char name[NAME_ROOM], part[NAME_ROOM];
	int fd;
	int64_t max_bytes, total; /* the file is a ring: the next byte goes to total % max_bytes */
};

struct kept_read {
	struct kept *k;
	int fd;
	int64_t at;
	struct loop_work *work;
	bool times; /* its lines have times in front */
	bool over; /* all of it was read */
	struct kept_lines lines;
	log_fn fn;
	void *arg;
};

static void name_of(const char *pod, const char *suffix, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%.63s%s", pod, suffix);
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n > m && strcmp(s + n - m, end) == 0;
}

static DIR *list(const struct kept *k)
{
	const int fd = openat(k->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

int kept_new(struct loop *l, const char *state, struct kept **out, struct gpuq_err *err)
{
	struct kept *k = calloc(1, sizeof(*k));
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct dirent *e;
	DIR *dir;
	int rc = 0;

	if (!k)
		return gpuq_no_memory(err);
	gpuq_buf_printf(&path, "%s/logs", state);
	k->l = l;
	if (mkdir(gpuq_buf_str(&path), 0700) != 0 && errno != EEXIST)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", gpuq_buf_str(&path), strerror(errno));
	k->dir_fd =
		rc == 0 ? open(gpuq_buf_str(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
			: -1;
	if (rc == 0 && k->dir_fd < 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", gpuq_buf_str(&path), strerror(errno));
	gpuq_buf_done(&path);
	if (rc < 0) {
		kept_free(k);
		return rc;
	}
	dir = list(k);
	while (dir && (e = readdir(dir)))
		if (ends_with(e->d_name, PART))
			unlinkat(k->dir_fd, e->d_name, 0);
	if (dir)
		closedir(dir);
	*out = k;
	return 0;
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	if (k->dir_fd >= 0)
		close(k->dir_fd);
	free(k);
}

bool kept_has(const struct kept *k, const char *pod)
{
	char name[NAME_ROOM];

	name_of(pod, SUFFIX, name);
	if (faccessat(k->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return true;
	name_of(pod, SUFFIX_OLD, name);
	return faccessat(k->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- writing ---- */

struct kept_write *kept_write_new(struct kept *k, const char *pod, int64_t max_bytes)
{
	struct kept_write *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->k = k;
	w->max_bytes = max_bytes;
	name_of(pod, SUFFIX, w->name);
	name_of(pod, SUFFIX PART, w->part);
	w->fd = openat(k->dir_fd, w->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		       0600);
	if (w->fd < 0) {
		free(w);
		return NULL;
	}
	return w;
}

bool kept_write_add(struct kept_write *w, const char *bytes, size_t n)
{
	while (n > 0) {
		const int64_t at = w->total % w->max_bytes;
		const size_t room = (size_t)(w->max_bytes - at), m = n < room ? n : room;

		if (gpuq_write_all_at(w->fd, bytes, m, at) < 0)
			return false;
		w->total += (int64_t)m;
		bytes += m;
		n -= m;
	}
	return true;
}

/* Copy a piece of the ring to the end of another file. */
static bool copy(int from, int64_t at, int64_t n, int to, int64_t *end)
{
	static char piece[PIECE];

	while (n > 0) {
		const ssize_t k = pread(from, piece, n < (int64_t)PIECE ? (size_t)n : PIECE, at);

		if (k <= 0 || gpuq_write_all_at(to, piece, (size_t)k, *end) < 0)
			return false;
		at += k;
		n -= k;
		*end += k;
	}
	return true;
}

/* Return how many bytes of the ring, from at, are the end of a line whose beginning was overwritten; 0 where there is
 * no other line. */
static int64_t rest_of_line(const struct kept_write *w, int64_t at)
{
	char piece[4096];
	int64_t n = 0;

	while (n < w->max_bytes) {
		const int64_t from = (at + n) % w->max_bytes, room = w->max_bytes - from;
		int64_t most = w->max_bytes - n < room ? w->max_bytes - n : room;
		ssize_t k;
		const char *nl;

		most = most < (int64_t)sizeof(piece) ? most : (int64_t)sizeof(piece);
		k = pread(w->fd, piece, (size_t)most, from);
		if (k <= 0)
			return 0;
		nl = memchr(piece, '\n', (size_t)k);
		if (nl)
			return n + (nl + 1 - piece) < w->max_bytes ? n + (nl + 1 - piece) : 0;
		n += k;
	}
	return 0;
}

/* Put the ring in order. */
static bool straighten(struct kept_write *w)
{
	const int64_t oldest = w->total % w->max_bytes;
	int64_t cut, at, end;
	char line[100];
	bool ok;
	int fd;

	if (w->total <= w->max_bytes)
		return true;
	cut = rest_of_line(w, oldest);
	at = oldest + cut;
	/* The old file lives by its descriptor. */
	unlinkat(w->k->dir_fd, w->part, 0);
	fd = openat(w->k->dir_fd, w->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return false;
	end = snprintf(line, sizeof(line), "gpuq: the first %" PRId64 " bytes are not kept\n",
		       w->total - w->max_bytes + cut);
	ok = gpuq_write_all_at(fd, line, (size_t)end, 0) == 0;
	if (ok && at < w->max_bytes)
		ok = copy(w->fd, at, w->max_bytes - at, fd, &end) &&
		     copy(w->fd, 0, oldest, fd, &end);
	else if (ok)
		ok = copy(w->fd, at - w->max_bytes, oldest - (at - w->max_bytes), fd, &end);
	if (!ok) {
		close(fd);
		return false;
	}
	close(w->fd);
	w->fd = fd;
	return true;
}

void kept_write_end(struct kept_write *w, int64_t until_s)
{
	const struct timespec times[2] = { { .tv_sec = until_s }, { .tv_sec = until_s } };

	if (w->total && straighten(w) && futimens(w->fd, times) == 0 &&
	    renameat(w->k->dir_fd, w->part, w->k->dir_fd, w->name) == 0) {
		close(w->fd);
		free(w);
		return;
	}
	if (w->total)
		log_warn("logs.keep", "file=%s error=%s", w->name, LOGS(strerror(errno)));
	kept_write_drop(w);
}

void kept_write_drop(struct kept_write *w)
{
	unlinkat(w->k->dir_fd, w->part, 0);
	close(w->fd);
	free(w);
}

/* ---- reading ---- */

/* Return where the last lines begin. */
static int64_t start_of(int fd, int64_t lines)
{
	struct stat st;
	char piece[4096];
	int64_t at;

	if (lines < 0 || fstat(fd, &st) != 0)
		return 0;
	at = st.st_size;
	while (at > 0) {
		const int64_t from = at > (int64_t)sizeof(piece) ? at - (int64_t)sizeof(piece) : 0;
		const ssize_t n = pread(fd, piece, (size_t)(at - from), from);

		for (ssize_t i = n; i-- > 0;) {
			/* The end of the last line begins none. */
			if (piece[i] != '\n' || from + i + 1 == st.st_size)
				continue;
			if (--lines <= 0)
				return from + i + 1;
		}
		at = from;
	}
	return lines == 0 ? st.st_size : 0;
}

static bool step(void *arg)
{
	struct kept_read *r = arg;
	struct gpuq_buf out = GPUQ_BUF_INIT;
	char piece[PIECE];
	const ssize_t n = pread(r->fd, piece, sizeof(piece), r->at);
	bool more = true;

	if (n > 0 && r->times)
		kept_lines_feed(&r->lines, piece, (size_t)n, &out);
	else if (n > 0)
		gpuq_buf_add(&out, piece, (size_t)n);
	else if (r->times && !r->over)
		kept_lines_end(&r->lines, &out);
	r->at += n > 0 ? n : 0;
	r->over |= n <= 0;
	/* The callback may not close it: it only notes. */
	if (out.len)
		more = r->fn(r->arg, out.data, out.len, NULL);
	if (!more || (r->over && !out.len))
		r->work = NULL;
	if (r->over && !out.len) {
		r->fn(r->arg, NULL, 0, NULL);
		more = false;
	}
	gpuq_buf_done(&out);
	return more;
}

void kept_read_resume(struct kept_read *r)
{
	if (!r->work)
		r->work = loop_work_as(r->k->l, "job.logs", step, r);
}

static int open_kept(const struct kept *k, const char *pod, const char *suffix)
{
	char name[NAME_ROOM];

	name_of(pod, suffix, name);
	return openat(k->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

struct kept_read *kept_read_new(struct kept *k, const char *pod, const struct log_opts *o,
				log_fn fn, void *arg, struct gpuq_err *err)
{
	struct kept_read *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	*r = (struct kept_read){ .k = k, .fn = fn, .arg = arg, .times = true };
	r->fd = open_kept(k, pod, SUFFIX);
	if (r->fd < 0) {
		r->times = false;
		r->fd = open_kept(k, pod, SUFFIX_OLD);
	}
	if (r->fd < 0)
		gpuq_fail(err, GPUQ_ENOENT, "no output of pod %s is kept", pod);
	else if (!r->times && (o->timestamps || o->since_us))
		gpuq_fail(err, GPUQ_EINVAL,
			  "the output of pod %s was kept without times, by an older gpuqd: "
			  "leave out since and timestamps",
			  pod);
	if (r->fd < 0 || (!r->times && (o->timestamps || o->since_us))) {
		if (r->fd >= 0)
			close(r->fd);
		free(r);
		return NULL;
	}
	kept_lines_init(&r->lines, o->since_us, o->timestamps);
	r->at = start_of(r->fd, o->tail_lines);
	kept_read_resume(r);
	return r;
}

void kept_read_close(struct kept_read *r)
{
	if (!r)
		return;
	loop_work_cancel(r->work);
	close(r->fd);
	free(r);
}

/* ---- removing ---- */

struct file {
	char name[NAME_ROOM];
	int64_t until_s, bytes;
};

static int by_end(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return (x->until_s > y->until_s) - (x->until_s < y->until_s);
}

void kept_sweep(struct kept *k, int64_t now_s, int64_t max_bytes,
		bool (*known)(void *arg, const char *pod), void *arg)
{
	struct file *files = NULL;
	size_t n = 0, room = 0;
	int64_t sum = 0;
	struct dirent *e;
	struct stat st;
	DIR *dir = list(k);

	while (dir && (e = readdir(dir))) {
		const char *suffix = ends_with(e->d_name, SUFFIX) ? SUFFIX : SUFFIX_OLD;
		char pod[NAME_ROOM];

		if (!ends_with(e->d_name, suffix) || strlen(e->d_name) >= NAME_ROOM ||
		    fstatat(k->dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		snprintf(pod, sizeof(pod), "%.*s", (int)(strlen(e->d_name) - strlen(suffix)),
			 e->d_name);
		if (st.st_mtim.tv_sec <= now_s || !known(arg, pod)) {
			unlinkat(k->dir_fd, e->d_name, 0);
			continue;
		}
		if (!grow_to(&files, &room, n + 1))
			break;
		snprintf(files[n].name, NAME_ROOM, "%.99s", e->d_name);
		files[n].until_s = st.st_mtim.tv_sec;
		files[n++].bytes = st.st_size;
		sum += st.st_size;
	}
	if (dir)
		closedir(dir);
	if (sum > max_bytes) {
		qsort(files, n, sizeof(*files), by_end);
		for (size_t i = 0; i < n && sum > max_bytes; i++) {
			unlinkat(k->dir_fd, files[i].name, 0);
			sum -= files[i].bytes;
		}
	}
	free(files);
}
