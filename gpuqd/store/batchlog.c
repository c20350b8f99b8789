#include "gpuqd/store/batchlog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/base/log.h"
#include "gpuqd/store/digest.h"
#include "gpuqd/store/meta.h"
#include "gpuqd/store/segment.h"
#include "libgpuq/base/write.h"
#include "libgpuq/grow.h"

#define OPEN_END ".open"
#define SEGMENT_END ".seg"

/* A file that grows. */
struct growing {
	int fd; /* -1 = there is none */
	struct segment_head head;
	struct batchlog_span span;
	int64_t last_us, bytes;
};

struct batchlog {
	int dir;
	int64_t max_bytes;
	pthread_mutex_t mu; /* of all that follows */
	struct growing now;
	int64_t before_bytes, before_us; /* of now, before the last batch */
	int64_t closed_bytes;
	bool full; /* and that was logged */
};

static void open_name(const struct growing *g, char out[BATCHLOG_NAME_BYTES])
{
	snprintf(out, BATCHLOG_NAME_BYTES, "%010" PRIu32 "-%020" PRIu64 OPEN_END, g->span.epoch,
		 g->span.first);
}

static void closed_name(const struct growing *g, char out[BATCHLOG_NAME_BYTES])
{
	snprintf(out, BATCHLOG_NAME_BYTES, "%010" PRIu32 "-%020" PRIu64 "-%020" PRIu64 SEGMENT_END,
		 g->span.epoch, g->span.first, g->span.last);
}

static bool is_closed(const char *name, struct batchlog_span *out)
{
	char again[BATCHLOG_NAME_BYTES];
	struct growing g = { .fd = -1 };

	if (sscanf(name, "%10" SCNu32 "-%20" SCNu64 "-%20" SCNu64, &g.span.epoch, &g.span.first,
		   &g.span.last) != 3)
		return false;
	closed_name(&g, again);
	*out = g.span;
	return strcmp(name, again) == 0;
}

/* ---- the end of a file that grows ---- */

static bool write_all(int fd, const struct gpuq_buf *b, int64_t at)
{
	return !b->failed && gpuq_write_all_at(fd, b->data, b->len, at) == 0;
}

/* Write the end of g and give it its name. It is gone afterwards in any case. */
static int close_growing(struct batchlog *b, struct growing *g, struct gpuq_err *err)
{
	char from[BATCHLOG_NAME_BYTES], to[BATCHLOG_NAME_BYTES];
	unsigned char sha[DIGEST_BYTES];
	struct gpuq_buf end = GPUQ_BUF_INIT;
	char hex[DIGEST_HEX_BYTES];
	int rc = 0;

	open_name(g, from);
	closed_name(g, to);
	segment_end_write(g->span.last, g->last_us, &end);
	if (!write_all(g->fd, &end, g->bytes))
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", from, strerror(errno));
	if (rc == 0)
		rc = digest_file(g->fd, g->bytes + (int64_t)end.len, hex, NULL, err);
	if (rc == 0) {
		digest_unhex(hex, sha);
		gpuq_buf_add(&end, sha, sizeof(sha));
		if (!write_all(g->fd, &end, g->bytes) || fdatasync(g->fd) != 0 ||
		    renameat(b->dir, from, b->dir, to) != 0)
			rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", from, strerror(errno));
	}
	if (rc < 0)
		unlinkat(b->dir, from, 0);
	close(g->fd);
	g->fd = -1;
	pthread_mutex_lock(&b->mu);
	b->closed_bytes += rc < 0 ? 0 : g->bytes;
	pthread_mutex_unlock(&b->mu);
	gpuq_buf_done(&end);
	return rc;
}

int batchlog_cut(struct batchlog *b, struct gpuq_err *err)
{
	char name[BATCHLOG_NAME_BYTES];
	struct growing g;

	pthread_mutex_lock(&b->mu);
	g = b->now;
	b->now = (struct growing){ .fd = -1 };
	pthread_mutex_unlock(&b->mu);
	if (g.fd < 0)
		return 0;
	if (g.span.first <= g.span.last)
		return close_growing(b, &g, err);
	open_name(&g, name);
	unlinkat(b->dir, name, 0);
	close(g.fd);
	return 0;
}

/* ---- batches ---- */

/* Forget what is open: the numbers show the gap. With the lock. */
static void give_up(struct batchlog *b, const char *why)
{
	char name[BATCHLOG_NAME_BYTES];

	log_warn("backup.batches", "error=%s: a full copy replaces what is lost", LOGS(why));
	open_name(&b->now, name);
	unlinkat(b->dir, name, 0);
	close(b->now.fd);
	b->now = (struct growing){ .fd = -1 };
}

static bool begin(struct batchlog *b, const struct store_identity *id, int64_t now_us)
{
	struct growing g = { .head = { .schema = STORE_SCHEMA, .id = *id, .begun_us = now_us },
			     .span = { id->epoch, id->seq, id->seq - 1 } };
	struct gpuq_buf head = GPUQ_BUF_INIT;
	char name[BATCHLOG_NAME_BYTES];

	open_name(&g, name);
	g.fd = openat(b->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (g.fd < 0) {
		log_warn("backup.batches", "error=%s", strerror(errno));
		return false;
	}
	segment_head_write(&g.head, &head);
	g.bytes = (int64_t)head.len;
	b->now = g;
	if (!write_all(g.fd, &head, 0))
		give_up(b, strerror(errno));
	gpuq_buf_done(&head);
	return b->now.fd >= 0;
}

/* Only one that continues what is open is put behind it. */
static bool continues(const struct growing *g, const struct store_identity *id)
{
	return g->fd >= 0 && strcmp(g->head.id.store_id, id->store_id) == 0 &&
	       g->span.epoch == id->epoch && g->span.last + 1 == id->seq;
}

static void append(struct batchlog *b, const struct store_meta *next, enum table clear,
		   const struct batch *changes, int64_t now_us)
{
	const struct segment_batch s = {
		.seq = next->id.seq, .at_us = now_us, .clear = clear, .sum = segment_sum(next)
	};
	struct gpuq_buf out = GPUQ_BUF_INIT;

	segment_batch_write(&s, changes, &out);
	b->before_bytes = b->now.bytes;
	b->before_us = b->now.last_us;
	if (b->closed_bytes + b->now.bytes + (int64_t)out.len > b->max_bytes) {
		if (!b->full)
			give_up(b, "the target took nothing for too long");
		b->full = true;
	} else if (!write_all(b->now.fd, &out, b->now.bytes)) {
		give_up(b, out.failed ? "no memory" : strerror(errno));
	} else {
		b->now.bytes += (int64_t)out.len;
		b->now.span.last = s.seq;
		b->now.last_us = now_us;
		b->full = false;
	}
	gpuq_buf_done(&out);
}

void batchlog_append(struct batchlog *b, const struct store_meta *next, enum table clear,
		     const struct batch *changes)
{
	const int64_t now_us = clock_us(CLOCK_REALTIME);
	struct gpuq_err err = GPUQ_ERR_INIT;

	pthread_mutex_lock(&b->mu);
	if (b->now.fd >= 0 && !continues(&b->now, &next->id)) {
		pthread_mutex_unlock(&b->mu);
		if (batchlog_cut(b, &err) < 0)
			log_warn("backup.batches", "error=%s", LOGS(err.text));
		pthread_mutex_lock(&b->mu);
	}
	if (b->now.fd >= 0 || begin(b, &next->id, now_us))
		append(b, next, clear, changes, now_us);
	pthread_mutex_unlock(&b->mu);
}

void batchlog_undo(struct batchlog *b)
{
	pthread_mutex_lock(&b->mu);
	/* Cut meanwhile, it is closed with a batch too many, which its numbers say: the next
	 * batch has the same number, and the chain is broken there. */
	if (b->now.fd >= 0 && b->now.span.last >= b->now.span.first) {
		b->now.bytes = b->before_bytes;
		b->now.last_us = b->before_us;
		b->now.span.last--;
		if (ftruncate(b->now.fd, b->now.bytes) != 0)
			give_up(b, strerror(errno));
	}
	pthread_mutex_unlock(&b->mu);
}

/* ---- what is there ---- */

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct batchlog_file *)x)->name,
		      ((const struct batchlog_file *)y)->name);
}

int batchlog_list(struct batchlog *b, struct batchlog_file **out, size_t *n_out,
		  struct gpuq_err *err)
{
	const int fd = openat(b->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct batchlog_file *all = NULL, f;
	size_t n = 0, room = 0;
	struct dirent *e;
	int rc = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return gpuq_fail(err, GPUQ_EIO, BATCHLOG_DIR ": %s", strerror(errno));
	}
	while (rc == 0 && (e = readdir(d))) {
		if (!is_closed(e->d_name, &f.span))
			continue;
		snprintf(f.name, sizeof(f.name), "%.63s", e->d_name);
		if (grow_to(&all, &room, n + 1))
			all[n++] = f;
		else
			rc = gpuq_no_memory(err);
	}
	closedir(d);
	if (n)
		qsort(all, n, sizeof(*all), by_name);
	if (rc < 0) {
		free(all);
		return rc;
	}
	*out = all;
	*n_out = n;
	return 0;
}

int batchlog_fd(struct batchlog *b, const char *name, struct gpuq_err *err)
{
	const int fd = openat(b->dir, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? gpuq_fail(err, GPUQ_EIO, BATCHLOG_DIR "/%s: %s", name, strerror(errno))
		      : fd;
}

void batchlog_drop(struct batchlog *b, const char *name)
{
	struct stat st;
	int64_t bytes = fstatat(b->dir, name, &st, 0) == 0 ? st.st_size : 0;

	if (unlinkat(b->dir, name, 0) != 0)
		bytes = 0;
	pthread_mutex_lock(&b->mu);
	b->closed_bytes -= bytes < b->closed_bytes ? bytes : b->closed_bytes;
	pthread_mutex_unlock(&b->mu);
}

struct batchlog_span batchlog_pending(struct batchlog *b)
{
	struct batchlog_span s = { 0 };

	pthread_mutex_lock(&b->mu);
	if (b->now.fd >= 0 && b->now.span.first <= b->now.span.last)
		s = b->now.span;
	pthread_mutex_unlock(&b->mu);
	return s;
}

uint64_t batchlog_reach(const struct batchlog_span *spans, size_t n, uint32_t epoch, uint64_t after)
{
	for (size_t i = 0; i < n; i++)
		if (spans[i].epoch == epoch && spans[i].first <= after + 1 && spans[i].last > after)
			after = spans[i].last;
	return after;
}

/* ---- begin and end ---- */

static bool is_ours(const struct segment_head *h, const struct store_identity *is)
{
	return strcmp(h->id.store_id, is->store_id) == 0 && h->schema == STORE_SCHEMA;
}

/* Find the end of what was committed, or of what is whole. */
static void find_end(struct growing *g, struct segment *s, const struct store_identity *is)
{
	struct segment_batch batch;

	g->bytes = s->at;
	while (g->span.last < is->seq && segment_next(s, &batch, NULL) == 1 &&
	       batch.seq == g->span.last + 1) {
		g->span.last = batch.seq;
		g->last_us = batch.at_us;
		g->bytes = s->at;
	}
}

static void close_old(struct batchlog *b, const char *name, const struct store_identity *is)
{
	struct growing g = { .fd = openat(b->dir, name, O_RDWR | O_CLOEXEC) };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct segment s;
	bool good;

	if (g.fd < 0)
		return;
	good = segment_open(&s, g.fd, &err) == 0 && is_ours(&s.head, is) &&
	       s.head.id.epoch == is->epoch;
	if (good) {
		g.head = s.head;
		g.span =
			(struct batchlog_span){ s.head.id.epoch, s.head.id.seq, s.head.id.seq - 1 };
		find_end(&g, &s, is);
		good = g.span.last >= g.span.first && ftruncate(g.fd, g.bytes) == 0;
	}
	segment_close(&s);
	if (good) {
		if (close_growing(b, &g, &err) < 0)
			log_warn("backup.batches", "error=%s", LOGS(err.text));
		return;
	}
	close(g.fd);
	unlinkat(b->dir, name, 0);
}

static void keep_closed(struct batchlog *b, const char *name, const struct store_identity *is)
{
	struct segment s = { .fd = -1 };
	const int fd = openat(b->dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (segment_open(&s, fd, NULL) == 0 && is_ours(&s.head, is))
		b->closed_bytes += s.bytes;
	else
		unlinkat(b->dir, name, 0);
	segment_close(&s);
	close(fd);
}

static int each_file(struct batchlog *b, const struct store_identity *is, struct gpuq_err *err)
{
	struct batchlog_span span;
	struct dirent **all = NULL;
	char path[64];
	int n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->dir);
	n = scandir(path, &all, NULL, alphasort);
	if (n < 0)
		return gpuq_fail(err, GPUQ_EIO, BATCHLOG_DIR ": %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		const char *name = all[i]->d_name, *end = strrchr(name, '.');

		if (is_closed(name, &span))
			keep_closed(b, name, is);
		else if (end && strcmp(end, OPEN_END) == 0)
			close_old(b, name, is);
		free(all[i]);
	}
	free(all);
	return 0;
}

int batchlog_open(const char *dir, const struct store_identity *is, int64_t max_bytes,
		  struct batchlog **out, struct gpuq_err *err)
{
	struct batchlog *b = calloc(1, sizeof(*b));
	char path[4200];
	int rc = 0;

	if (!b)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	pthread_mutex_init(&b->mu, NULL);
	b->now.fd = b->dir = -1;
	b->max_bytes = max_bytes;
	snprintf(path, sizeof(path), "%.4000s/" BATCHLOG_DIR, dir);
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	if (rc == 0)
		b->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rc == 0 && b->dir < 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	if (rc == 0)
		rc = each_file(b, is, err);
	if (rc < 0) {
		batchlog_close(b);
		return rc;
	}
	*out = b;
	return 0;
}

void batchlog_close(struct batchlog *b)
{
	if (!b)
		return;
	if (b->now.fd >= 0)
		close(b->now.fd);
	if (b->dir >= 0)
		close(b->dir);
	pthread_mutex_destroy(&b->mu);
	free(b);
}

void batchlog_discard(const char *dir)
{
	struct batchlog *b = NULL;
	char path[4200];

	snprintf(path, sizeof(path), "%.4000s/" BATCHLOG_DIR, dir);
	if (access(path, F_OK) != 0)
		return;
	/* None is of a database without a name. */
	if (batchlog_open(dir, &(struct store_identity){ .epoch = 0 }, 0, &b, NULL) == 0)
		batchlog_close(b);
	rmdir(path);
}
