#include "gpuq/pack/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/pack/ignore.h"
#include "libgpuq/buf.h"
#include "libgpuq/grow.h"
#include "libgpuq/limits.h"

#define DEPTH_MAX 100
#define IGNORE_BYTES_MAX (1u << 20)

struct walk {
	struct gpuq_arena *a;
	struct tree *t;
	struct ignore ig;
	struct gpuq_err *err;
	size_t n_items; /* looked at, taken or not: a hostile tree ends, too */
};

#define ADVICE "; list it in .gpuqignore to leave it out"

static int failed(struct walk *w, const char *path, const char *what)
{
	return gpuq_fail(w->err, errno == ENOENT ? GPUQ_EBUSY : GPUQ_EIO, "%s/%s: cannot %s: %s%s",
			 w->t->name, path, what, strerror(errno),
			 errno == ENOENT ? " (it was removed meanwhile: try again)" : ADVICE);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* List the names in a directory, sorted. */
static int names_of(struct walk *w, int fd, const char *path, const char ***out, size_t *n_out)
{
	const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	const char **names = NULL;
	size_t n = 0, room = 0;
	struct dirent *e;
	int rc = 0;

	if (!dir) {
		rc = failed(w, path, "read the directory");
		if (copy >= 0)
			close(copy);
		return rc;
	}
	while (rc == 0 && (e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (++w->n_items > 10 * (size_t)GPUQ_CODE_FILES_MAX)
			rc = gpuq_fail(w->err, GPUQ_ETOOBIG,
				       "%s: more than %u files, ignored ones included", w->t->name,
				       10 * GPUQ_CODE_FILES_MAX);
		else if (!grow_arena(w->a, &names, &room, n + 1, sizeof(*names)) ||
			 !(names[n++] = gpuq_arena_strdup(w->a, e->d_name)))
			rc = gpuq_no_memory(w->err);
	}
	closedir(dir);
	if (rc == 0 && n)
		qsort(names, n, sizeof(*names), by_name);
	*out = names;
	*n_out = n;
	return rc;
}

/* Read an ignore file of this directory, if there is one. */
static int read_rules(struct walk *w, int fd, const char *path, const char *name)
{
	const int f = openat(fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(IGNORE_BYTES_MAX);
	char piece[16384];
	ssize_t n = 0;
	int rc = 0;

	if (f < 0 && (errno == ENOENT || errno == ELOOP))
		return 0;
	while (f >= 0 && (n = read(f, piece, sizeof(piece))) > 0)
		gpuq_buf_add(&text, piece, (size_t)n);
	if (f < 0 || n < 0)
		rc = failed(w, name, "read");
	else if (text.failed)
		rc = gpuq_fail(w->err, GPUQ_ETOOBIG,
			       "%s/%s%s%s: expected at most 1 MiB of patterns", w->t->name, path,
			       *path ? "/" : "", name);
	else if (!ignore_add(&w->ig, path, text.data ? text.data : "", text.len))
		rc = gpuq_no_memory(w->err);
	if (f >= 0)
		close(f);
	gpuq_buf_done(&text);
	return rc;
}

/* True if a link in that directory leads out of the top. */
static bool leaves(const char *folder, const char *to)
{
	int depth = 0;

	if (*to == '/')
		return true;
	for (const char *p = folder; *p; p++)
		depth += *p == '/';
	depth += *folder != '\0';
	while (*to) {
		const size_t n = strcspn(to, "/");

		if (n == 2 && memcmp(to, "..", 2) == 0) {
			if (--depth < 0)
				return true;
		} else if (n && !(n == 1 && *to == '.')) {
			depth++;
		}
		to += n + (to[n] == '/');
	}
	return false;
}

static int read_link(struct walk *w, int fd, const char *name, const char *folder,
		     struct tree_file *f)
{
	char to[4096];
	const ssize_t n = readlinkat(fd, name, to, sizeof(to) - 1);

	if (n < 0)
		return failed(w, f->path, "read the link");
	to[n] = '\0';
	if (leaves(folder, to))
		return gpuq_fail(w->err, GPUQ_EINVAL,
				 "%s/%s is a link that leaves the directory, to %.200s" ADVICE,
				 w->t->name, f->path, to);
	f->link = gpuq_arena_strdup(w->a, to);
	return f->link ? 0 : gpuq_no_memory(w->err);
}

static int add(struct walk *w, const struct tree_file *f)
{
	struct tree *t = w->t;

	if (S_ISREG(f->st.st_mode))
		t->bytes += f->st.st_size;
	if (t->n >= GPUQ_CODE_FILES_MAX)
		return gpuq_fail(
			w->err, GPUQ_ETOOBIG,
			"%s: more than %u files: leave some out with .gpuqignore, or put data on a "
			"volume",
			t->name, GPUQ_CODE_FILES_MAX);
	if (t->bytes > (int64_t)GPUQ_CODE_TREE_BYTES_MAX)
		return gpuq_fail(w->err, GPUQ_ETOOBIG,
				 "%s: more than %u MiB, with %s: leave large files out with "
				 ".gpuqignore, or put "
				 "data on a volume",
				 t->name, GPUQ_CODE_TREE_BYTES_MAX >> 20, f->path);
	if (!grow_arena(w->a, &t->files, &t->room, t->n + 1, sizeof(*f)))
		return gpuq_no_memory(w->err);
	t->files[t->n++] = *f;
	return 0;
}

static const char *kind_of(mode_t mode)
{
	return S_ISSOCK(mode)   ? "a socket"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISCHR(mode)  ? "a device"
				: "a block device";
}

static int walk(struct walk *w, int fd, const char *path, int depth);

static int walk_below(struct walk *w, int fd, const char *name, const char *path, int depth)
{
	const int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int rc;

	if (sub < 0)
		return failed(w, path, "open the directory");
	rc = walk(w, sub, path, depth + 1);
	close(sub);
	return rc;
}

static int item(struct walk *w, int fd, const char *folder, const char *name, int depth)
{
	struct tree_file f = { .path = *folder ? gpuq_arena_printf(w->a, "%s/%s", folder, name)
					       : name };
	bool is_dir;
	int rc = 0;

	if (!f.path)
		return gpuq_no_memory(w->err);
	if (strlen(f.path) >= 4096)
		return gpuq_fail(w->err, GPUQ_ETOOBIG,
				 "%s/%.100s...: the path is longer than 4,095 bytes", w->t->name,
				 f.path);
	if (fstatat(fd, name, &f.st, AT_SYMLINK_NOFOLLOW) != 0)
		return failed(w, f.path, "look at it");
	is_dir = S_ISDIR(f.st.st_mode);
	if (strcmp(name, ".git") == 0 || ignore_has(&w->ig, f.path, is_dir))
		return 0;
	if (!is_dir && !S_ISREG(f.st.st_mode) && !S_ISLNK(f.st.st_mode))
		return gpuq_fail(w->err, GPUQ_EINVAL, "%s/%s is %s, which cannot be carried" ADVICE,
				 w->t->name, f.path, kind_of(f.st.st_mode));
	if (S_ISLNK(f.st.st_mode))
		rc = read_link(w, fd, name, folder, &f);
	if (rc == 0)
		rc = add(w, &f);
	return rc == 0 && is_dir ? walk_below(w, fd, name, f.path, depth) : rc;
}

static int walk(struct walk *w, int fd, const char *path, int depth)
{
	const size_t n_rules = w->ig.n;
	const char **names = NULL;
	size_t n = 0;
	int rc;

	if (depth > DEPTH_MAX)
		return gpuq_fail(w->err, GPUQ_ETOOBIG,
				 "%s/%.200s: more than %d directories deep" ADVICE, w->t->name,
				 path, DEPTH_MAX);
	rc = names_of(w, fd, path, &names, &n);
	if (rc == 0)
		rc = read_rules(w, fd, path, ".gitignore");
	if (rc == 0)
		rc = read_rules(w, fd, path, ".gpuqignore");
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = item(w, fd, path, names[i], depth);
	ignore_cut(&w->ig, n_rules);
	return rc;
}

int tree_read(struct gpuq_arena *a, const char *dir, struct tree *out, struct gpuq_err *err)
{
	struct tree t = { .fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .name = dir };
	struct walk w = { .a = a, .t = &t, .ig = { .a = a }, .err = err };
	int rc;

	if (t.fd < 0)
		return gpuq_fail(err, errno == ENOENT ? GPUQ_ENOENT : GPUQ_EINVAL, "%s: %s", dir,
				 strerror(errno));
	rc = walk(&w, t.fd, "", 0);
	if (rc < 0)
		tree_done(&t);
	else
		*out = t;
	return rc;
}

void tree_done(struct tree *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

bool tree_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}
