#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "gpuqd/flow/code/codes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/store/digest.h"
#include "libgpuq/base/write.h"
#include "libgpuq/limits.h"

#define OWNER_BYTES 16 /* hex digits of the digest of the user's name */
#define NAME_BYTES (OWNER_BYTES + 1 + DIGEST_HEX_BYTES)
_Static_assert(NAME_BYTES <= CODES_NAME_BYTES, "a name fits");
#define PART ".part"
#define FREE_BYTES_MIN (INT64_C(64) << 20) /* that the ledger keeps of a disk */

struct code {
	UT_hash_handle hh;
	char name[NAME_BYTES]; /* OWNER-DIGEST, the file's name */
	int64_t bytes, total; /* that are there; in the end */
	int64_t used_us;
	struct digest *digest; /* of what has arrived; NULL = all of it is there */
	int fd; /* of what arrives */
	bool marked, settling;
};

struct codes {
	char *dir;
	int dir_fd;
	struct code *all;
	struct codes_outside outside; /* put NULL = there is none */
};

struct codes_settle {
	int dir_fd, fd;
	char name[NAME_BYTES];
	int why; /* errno; 0 = it is durable */
	struct codes_outside outside; /* put NULL = it need not go there */
	int rc; /* of that */
	struct gpuq_err err;
};

static void owner_of(const char *user, char out[OWNER_BYTES + 1])
{
	unsigned char raw[DIGEST_BYTES] = { 0 };
	char hex[DIGEST_HEX_BYTES];
	struct digest *d;

	if (digest_new(&d, NULL) < 0)
		abort();
	digest_add(d, user, strlen(user));
	digest_end(d, raw);
	digest_hex(raw, hex);
	snprintf(out, OWNER_BYTES + 1, "%.*s", OWNER_BYTES, hex);
}

static void name_of(const char *user, const char *digest, char out[NAME_BYTES])
{
	char owner[OWNER_BYTES + 1];

	owner_of(user, owner);
	snprintf(out, NAME_BYTES, "%s-%.64s", owner, digest);
}

static void part_of(const char *name, char out[NAME_BYTES + sizeof(PART)])
{
	snprintf(out, NAME_BYTES + sizeof(PART), "%s" PART, name);
}

static struct code *find(struct codes *c, const char *name)
{
	struct code *x;

	HASH_FIND_STR(c->all, name, x);
	return x;
}

static struct code *add(struct codes *c, const char *name, int64_t now_us)
{
	struct code *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	snprintf(x->name, sizeof(x->name), "%s", name);
	x->fd = -1;
	x->used_us = now_us;
	HASH_ADD_STR(c->all, name, x);
	return x;
}

/* Forget it; its file goes with it, whichever of the two it is. */
static void drop(struct codes *c, struct code *x, bool remove)
{
	char part[NAME_BYTES + sizeof(PART)];

	part_of(x->name, part);
	if (remove)
		unlinkat(c->dir_fd, x->digest ? part : x->name, 0);
	HASH_DEL(c->all, x);
	digest_end(x->digest, NULL);
	if (x->fd >= 0)
		close(x->fd);
	free(x);
}

/* ---- start and end ---- */

static bool is_name(const char *s)
{
	return strlen(s) == NAME_BYTES - 1 && strspn(s, "0123456789abcdef") == OWNER_BYTES &&
	       s[OWNER_BYTES] == '-' &&
	       strspn(s + OWNER_BYTES + 1, "0123456789abcdef") == DIGEST_HEX_BYTES - 1;
}

static int look(struct codes *c, int64_t now_us, struct gpuq_err *err)
{
	const int fd = openat(c->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", c->dir, strerror(errno));
	}
	while ((e = readdir(dir))) {
		const char *end = strrchr(e->d_name, '.');

		if (end && strcmp(end, PART) == 0)
			unlinkat(c->dir_fd, e->d_name, 0);
		if (!is_name(e->d_name) ||
		    fstatat(c->dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		add(c, e->d_name, now_us)->bytes = st.st_size;
	}
	closedir(dir);
	return 0;
}

int codes_open(const char *state, int64_t now_us, struct codes **out, struct gpuq_err *err)
{
	struct codes *c = calloc(1, sizeof(*c));
	int rc = 0;

	if (!c)
		return gpuq_no_memory(err);
	c->dir_fd = -1;
	if (asprintf(&c->dir, "%s/code", state) < 0) {
		c->dir = NULL;
		rc = gpuq_no_memory(err);
	} else if (mkdir(c->dir, 0700) != 0 && errno != EEXIST) {
		rc = gpuq_fail(err, errno == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO, "%s: %s", c->dir,
			       strerror(errno));
	} else if ((c->dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)) <
		   0) {
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", c->dir, strerror(errno));
	}
	if (rc == 0)
		rc = look(c, now_us, err);
	if (rc < 0)
		codes_close(c);
	else
		*out = c;
	return rc;
}

void codes_close(struct codes *c)
{
	struct code *x, *next;

	if (!c)
		return;
	HASH_ITER(hh, c->all, x, next)
		drop(c, x, false);
	if (c->dir_fd >= 0)
		close(c->dir_fd);
	free(c->dir);
	free(c);
}

/* ---- another place ---- */

void codes_set_outside(struct codes *c, const struct codes_outside *o)
{
	c->outside = *o;
}

bool codes_goes_outside(const struct codes *c, int64_t bytes)
{
	return c->outside.put && bytes > c->outside.above_bytes;
}

void codes_name(const char *user, const char *digest, char out[CODES_NAME_BYTES])
{
	name_of(user, digest, out);
}

/* ---- reading ---- */

int64_t codes_find(struct codes *c, const char *user, const char *digest, int64_t now_us)
{
	char name[NAME_BYTES];
	struct code *x;

	name_of(user, digest, name);
	x = find(c, name);
	if (!x || x->digest)
		return -1;
	/* It came before there was another place: it has to come again. */
	if (codes_goes_outside(c, x->bytes) && x->bytes > (int64_t)GPUQ_CODE_POD_BYTES &&
	    !c->outside.has(c->outside.arg, name)) {
		drop(c, x, true);
		return -1;
	}
	x->used_us = now_us;
	return x->bytes;
}

const char *codes_path(const struct codes *c, const char *user, const char *digest,
		       struct gpuq_arena *a)
{
	char name[NAME_BYTES];

	name_of(user, digest, name);
	return gpuq_arena_printf(a, "%s/%s", c->dir, name);
}

void codes_sums(const struct codes *c, struct codes_sums *out)
{
	*out = (struct codes_sums){ .files = 0 };
	for (const struct code *x = c->all; x; x = x->hh.next) {
		out->files += !x->digest;
		out->arriving += x->digest != NULL;
		out->bytes += x->digest ? x->total : x->bytes;
	}
}

/* ---- arriving ---- */

/* Check whether another archive of so many bytes may begin. */
static int may_begin(const struct codes *c, const char *name, int64_t total, struct gpuq_err *err)
{
	int64_t own = 0, all = 0;
	unsigned n_own = 0, n_all = 0;
	struct statvfs v;

	for (const struct code *x = c->all; x; x = x->hh.next) {
		const bool mine = memcmp(x->name, name, OWNER_BYTES) == 0;
		const int64_t bytes = x->digest ? x->total : x->bytes;

		all += bytes;
		own += mine ? bytes : 0;
		n_all += x->digest != NULL;
		n_own += x->digest && mine;
	}
	if (n_own >= GPUQ_CODE_UPLOADS_PER_USER || n_all >= GPUQ_CODE_UPLOADS_MAX)
		return gpuq_fail(err, GPUQ_EBUSY,
				 "%u directories are on their way already: try again", n_own);
	if (own + total > GPUQ_CODE_USER_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ELIMIT,
				 "the code of your jobs takes %" PRId64 " MiB of %" PRId64
				 " in gpuqd's state directory: wait until some of them have ended",
				 own >> 20, GPUQ_CODE_USER_BYTES_MAX >> 20);
	if (all + total > GPUQ_CODE_ALL_BYTES_MAX)
		return gpuq_fail(
			err, GPUQ_ELIMIT,
			"the code of all jobs takes %" PRId64 " MiB of %" PRId64
			" in gpuqd's state directory: try again once some of them have ended",
			all >> 20, GPUQ_CODE_ALL_BYTES_MAX >> 20);
	if (fstatvfs(c->dir_fd, &v) == 0 &&
	    (int64_t)v.f_bavail * (int64_t)v.f_frsize < FREE_BYTES_MIN + total)
		return gpuq_fail(err, GPUQ_ESTORAGE,
				 "no space for the code of the job in gpuqd's state directory");
	return 0;
}

static int begin(struct codes *c, const char *name, int64_t total, int64_t now_us,
		 struct code **out, struct gpuq_err *err)
{
	char part[NAME_BYTES + sizeof(PART)];
	struct digest *d;
	struct code *x;
	int fd, rc = may_begin(c, name, total, err);

	if (rc == 0)
		rc = digest_new(&d, err);
	if (rc < 0)
		return rc;
	part_of(name, part);
	fd = openat(c->dir_fd, part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		digest_end(d, NULL);
		return gpuq_fail(err, errno == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO, "%s: %s", c->dir,
				 strerror(errno));
	}
	x = add(c, name, now_us);
	x->digest = d;
	x->total = total;
	x->fd = fd;
	*out = x;
	return 0;
}

static int append(struct code *x, const struct codes_piece *p, struct gpuq_err *err)
{
	const int why = gpuq_write_all(x->fd, p->bytes, p->n) < 0 ? errno
			: FAILPOINT("codes.append")               ? ENOSPC
								  : 0;

	if (why)
		return gpuq_fail(err, why != ENOSPC ? GPUQ_EIO : GPUQ_ESTORAGE,
				 "cannot store the code of the job: %s", strerror(why));
	digest_add(x->digest, p->bytes, p->n);
	x->bytes += (int64_t)p->n;
	return 0;
}

static int end(struct codes *c, struct code *x, const char *digest, struct codes_settle **out,
	       struct gpuq_err *err)
{
	unsigned char raw[DIGEST_BYTES] = { 0 };
	char hex[DIGEST_HEX_BYTES];
	struct codes_settle *s;

	digest_end(x->digest, raw);
	x->digest = NULL;
	if (digest_new(&x->digest, err) < 0) /* it stands for "arriving" until it is settled */
		return GPUQ_ENOMEM;
	digest_hex(raw, hex);
	if (strcmp(hex, digest) != 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the bytes have another digest than they should");
	s = calloc(1, sizeof(*s));
	if (!s)
		return gpuq_no_memory(err);
	s->dir_fd = c->dir_fd;
	s->fd = x->fd;
	if (codes_goes_outside(c, x->bytes))
		s->outside = c->outside;
	x->fd = -1;
	x->settling = true;
	snprintf(s->name, sizeof(s->name), "%s", x->name);
	*out = s;
	return 0;
}

int codes_put(struct codes *c, const struct codes_piece *p, int64_t now_us, int64_t *have,
	      struct codes_settle **settle, struct gpuq_err *err)
{
	char name[NAME_BYTES];
	struct code *x;
	int rc = 0;

	*settle = NULL;
	name_of(p->user, p->digest, name);
	x = find(c, name);
	if (x && x->settling)
		return gpuq_fail(err, GPUQ_EBUSY, "the same directory is being stored: try again");
	if (x && x->digest &&
	    (x->total != p->total || (p->offset == 0 && x->bytes))) { /* begun anew */
		drop(c, x, true);
		x = NULL;
	}
	if (x && !x->digest) {
		*have = x->bytes;
		return 0;
	}
	if (!x)
		rc = begin(c, name, p->total, now_us, &x, err);
	if (rc < 0)
		return rc;
	x->used_us = now_us;
	if (p->offset == x->bytes && x->bytes + (int64_t)p->n <= x->total)
		rc = append(x, p, err);
	if (rc == 0 && x->bytes == x->total)
		rc = end(c, x, p->digest, settle, err);
	*have = x->bytes;
	if (rc < 0)
		drop(c, x, true);
	return rc;
}

void codes_settle(struct codes_settle *s)
{
	char part[NAME_BYTES + sizeof(PART)];

	part_of(s->name, part);
	(void)FAILPOINT("codes.settle");
	if (s->outside.put)
		s->rc = s->outside.put(s->outside.arg, s->name, s->name + OWNER_BYTES + 1, s->fd,
				       &s->err);
	if (s->rc < 0)
		return;
	if (fsync(s->fd) != 0 || renameat(s->dir_fd, part, s->dir_fd, s->name) != 0 ||
	    fsync(s->dir_fd) != 0)
		s->why = errno;
}

void codes_settle_drop(struct codes_settle *s)
{
	close(s->fd);
	free(s);
}

int codes_settled(struct codes *c, struct codes_settle *s, int64_t now_us, struct gpuq_err *err)
{
	struct code *x = find(c, s->name);
	const int why = s->why, rc = s->rc;

	if (rc < 0)
		gpuq_fail(err, rc, "cannot store the code of the job: %s", s->err.text);
	codes_settle_drop(s);
	if (!x)
		return gpuq_fail(err, GPUQ_EGONE, "the code of the job is not stored");
	x->settling = false;
	x->used_us = now_us;
	if (rc < 0) {
		drop(c, x, true);
		return rc;
	}
	if (why) {
		drop(c, x, true);
		return gpuq_fail(err, why == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO,
				 "cannot store the code of the job: %s", strerror(why));
	}
	digest_end(x->digest, NULL);
	x->digest = NULL;
	return 0;
}

/* ---- staying and going ---- */

void codes_mark(struct codes *c, const char *user, const char *digest)
{
	char name[NAME_BYTES];
	struct code *x;

	name_of(user, digest, name);
	x = find(c, name);
	if (x)
		x->marked = true;
}

void codes_sweep(struct codes *c, int64_t now_us, int64_t keep_us)
{
	struct code *x, *next;

	HASH_ITER(hh, c->all, x, next) {
		const int64_t limit_us = x->digest ? GPUQ_CODE_IDLE_S * INT64_C(1000000) : keep_us;

		if (x->marked) {
			x->marked = false;
			x->used_us = now_us;
		} else if (!x->settling && now_us - x->used_us >= limit_us) {
			log_debug("code.removed", "file=%s bytes=%" PRId64, x->name, x->bytes);
			drop(c, x, true);
		}
	}
}
