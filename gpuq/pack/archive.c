#include "gpuq/pack/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <zlib.h>

#include "libgpuq/base/write.h"
#include "libgpuq/limits.h"

#define BLOCK 512
#define PIECE (256u << 10)
#define TIME 946684800 /* 2000-01-01: formats such as zip know nothing before 1980 */
#define LEVEL 5 /* a fifth faster than 6, the default of gzip, for a hundredth of the size */
#define GZIP 31 /* windowBits: 15, with gzip's header */

struct archive {
	int fd;
	z_stream z;
	EVP_MD_CTX *md;
	unsigned char in[PIECE], out[PIECE];
	int64_t bytes;
	const char *name; /* of the tree, for messages */
	struct gpuq_err *err;
};

static void hex_of(EVP_MD_CTX *md, char out[ARCHIVE_HEX_BYTES])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	EVP_DigestFinal_ex(md, raw, &n);
	for (unsigned i = 0; i < n && i < (ARCHIVE_HEX_BYTES - 1) / 2; i++)
		snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

/* ---- compressed bytes ---- */

static int put_out(struct archive *x)
{
	const size_t n = PIECE - x->z.avail_out;

	x->bytes += (int64_t)n;
	if (x->bytes > (int64_t)GPUQ_CODE_BYTES_MAX)
		return gpuq_fail(x->err, GPUQ_ETOOBIG,
				 "%s: more than %u MiB compressed: leave large files out with "
				 ".gpuqignore, or put "
				 "data on a volume",
				 x->name, GPUQ_CODE_BYTES_MAX >> 20);
	EVP_DigestUpdate(x->md, x->out, n);
	if (gpuq_write_all(x->fd, x->out, n) < 0)
		return gpuq_fail(x->err, GPUQ_EIO, "cannot write the archive of %s: %s", x->name,
				 strerror(errno));
	x->z.next_out = x->out;
	x->z.avail_out = PIECE;
	return 0;
}

static int put(struct archive *x, const void *bytes, size_t n, int flush)
{
	int rc = 0, z;

	x->z.next_in = (Bytef *)(uintptr_t)bytes;
	x->z.avail_in = (uInt)n;
	do {
		z = deflate(&x->z, flush);
		if (z == Z_STREAM_ERROR)
			return gpuq_fail(x->err, GPUQ_EINTERNAL, "zlib: %s",
					 x->z.msg ? x->z.msg : "error");
		if (x->z.avail_out == 0 || z == Z_STREAM_END)
			rc = put_out(x);
	} while (rc == 0 && (x->z.avail_in || (flush == Z_FINISH && z != Z_STREAM_END)));
	return rc;
}

static int pad(struct archive *x, int64_t bytes)
{
	static const char zeros[BLOCK];
	const size_t over = (size_t)(bytes % BLOCK);

	return over ? put(x, zeros, BLOCK - over, Z_NO_FLUSH) : 0;
}

/* ---- headers ---- */

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100],
		magic[8];
	char rest[BLOCK - 265];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static int put_header(struct archive *x, const char *name, char type, unsigned mode, int64_t size,
		      const char *link)
{
	struct header h = { .type = type };
	const unsigned char *at = (const unsigned char *)&h;
	unsigned sum = 0;

	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	if (link)
		memcpy(h.link, link, strnlen(link, sizeof(h.link)));
	snprintf(h.mode, sizeof(h.mode), "%07o", mode);
	memcpy(h.uid, "0000000", sizeof(h.uid));
	memcpy(h.gid, "0000000", sizeof(h.gid));
	snprintf(h.size, sizeof(h.size), "%011" PRIo64, (uint64_t)size);
	snprintf(h.time, sizeof(h.time), "%011o", (unsigned)TIME);
	memcpy(h.magic, "ustar  ", sizeof(h.magic));
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += at[i];
	snprintf(h.sum, sizeof(h.sum), "%06o", sum);
	return put(x, &h, sizeof(h), Z_NO_FLUSH);
}

/* A name that does not fit into the next header comes before it. */
static int put_long(struct archive *x, char type, const char *name)
{
	const size_t n = strlen(name) + 1;
	int rc;

	if (n <= sizeof(((struct header *)0)->name))
		return 0;
	rc = put_header(x, "././@LongLink", type, 0, (int64_t)n, NULL);
	if (rc == 0)
		rc = put(x, name, n, Z_NO_FLUSH);
	return rc == 0 ? pad(x, (int64_t)n) : rc;
}

/* ---- files ---- */

static int changed(struct archive *x, const struct tree_file *f)
{
	return gpuq_fail(
		x->err, GPUQ_EBUSY,
		"%s/%s changed while it was read: wait until it is written, or leave it out with "
		".gpuqignore",
		x->name, f->path);
}

static int put_content(struct archive *x, const struct tree_file *f, int fd)
{
	int64_t left = f->st.st_size;
	struct stat after;
	int rc = 0;

	while (rc == 0 && left > 0) {
		const ssize_t n = read(
			fd, x->in, left < (int64_t)sizeof(x->in) ? (size_t)left : sizeof(x->in));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return gpuq_fail(x->err, GPUQ_EIO, "%s/%s: cannot read: %s", x->name,
					 f->path, strerror(errno));
		if (n == 0)
			return changed(x, f);
		rc = put(x, x->in, (size_t)n, Z_NO_FLUSH);
		left -= n;
	}
	if (rc == 0 && (fstat(fd, &after) != 0 || !tree_same(&f->st, &after)))
		return changed(x, f);
	return rc == 0 ? pad(x, f->st.st_size) : rc;
}

static int put_file(struct archive *x, const struct tree *t, const struct tree_file *f)
{
	const int fd = openat(t->fd, f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat now;
	int rc;

	if (fd < 0)
		return errno == ENOENT || errno == ELOOP
			       ? changed(x, f)
			       : gpuq_fail(x->err, GPUQ_EIO,
					   "%s/%s: cannot open: %s; list it in .gpuqignore to "
					   "leave it out",
					   x->name, f->path, strerror(errno));
	if (fstat(fd, &now) != 0 || !tree_same(&f->st, &now))
		rc = changed(x, f);
	else
		rc = put_header(x, f->path, '0', f->st.st_mode & 0100 ? 0755 : 0644, f->st.st_size,
				NULL);
	if (rc == 0)
		rc = put_content(x, f, fd);
	close(fd);
	return rc;
}

static int put_any(struct archive *x, const struct tree *t, const struct tree_file *f)
{
	int rc = f->link ? put_long(x, 'K', f->link) : 0;

	if (rc == 0)
		rc = put_long(x, 'L', f->path);
	if (rc < 0)
		return rc;
	if (f->link)
		return put_header(x, f->path, '2', 0777, 0, f->link);
	if (S_ISDIR(f->st.st_mode))
		return put_header(x, f->path, '5', 0755, 0, NULL);
	return put_file(x, t, f);
}

int archive_write(const struct tree *t, int fd, char digest[ARCHIVE_HEX_BYTES], int64_t *bytes,
		  struct gpuq_err *err)
{
	static const char end[2 * BLOCK];
	static struct archive x; /* a megabyte: too much for a stack */
	int rc = 0;

	x = (struct archive){ .fd = fd, .name = t->name, .err = err, .md = EVP_MD_CTX_new() };
	if (!x.md || EVP_DigestInit_ex(x.md, EVP_sha256(), NULL) != 1 ||
	    deflateInit2(&x.z, LEVEL, Z_DEFLATED, GZIP, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
		EVP_MD_CTX_free(x.md);
		return gpuq_no_memory(err);
	}
	x.z.next_out = x.out;
	x.z.avail_out = PIECE;
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = put_any(&x, t, &t->files[i]);
	if (rc == 0)
		rc = put(&x, end, sizeof(end), Z_FINISH);
	if (rc == 0) {
		hex_of(x.md, digest);
		*bytes = x.bytes;
	}
	deflateEnd(&x.z);
	EVP_MD_CTX_free(x.md);
	return rc;
}

int archive_trace(const struct tree *t, char digest[ARCHIVE_HEX_BYTES], struct gpuq_err *err)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	if (!md || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(md);
		return gpuq_no_memory(err);
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct tree_file *f = &t->files[i];
		/* The times of a directory change with files that are left out. */
		const bool timed = S_ISREG(f->st.st_mode);
		const int64_t facts[] = { timed ? (int64_t)f->st.st_dev : 0,
					  timed ? (int64_t)f->st.st_ino : 0,
					  (int64_t)f->st.st_mode,
					  timed ? (int64_t)f->st.st_size : 0,
					  timed ? f->st.st_mtim.tv_sec : 0,
					  timed ? f->st.st_mtim.tv_nsec : 0,
					  timed ? f->st.st_ctim.tv_sec : 0,
					  timed ? f->st.st_ctim.tv_nsec : 0 };

		EVP_DigestUpdate(md, f->path, strlen(f->path) + 1);
		EVP_DigestUpdate(md, f->link ? f->link : "", f->link ? strlen(f->link) + 1 : 1);
		EVP_DigestUpdate(md, facts, sizeof(facts));
	}
	hex_of(md, digest);
	EVP_MD_CTX_free(md);
	return 0;
}
