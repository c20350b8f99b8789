#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "gpuq/cmd/job/code.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuq/file.h"
#include "libgpuq/buf.h"
#include "libgpuq/base/fnv.h"
#include "libgpuq/limits.h"

#define PACK "gpuq-pack"
#define ARCHIVE_FD 3 /* where it writes the archive */
#define HEX_BYTES 65

struct packed {
	char trace[HEX_BYTES], digest[HEX_BYTES]; /* "" not known */
	int64_t bytes;
	int settled; /* the trace changes when a file does */
};

/* ---- memory of directories ---- */

/* One file for each directory, by a hash of its path; the path is in it as well. */
static bool cache_path(const char *dir, bool make, char out[PATH_MAX])
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const uint64_t h = gpuq_fnv(GPUQ_FNV_START, dir, strlen(dir));
	char folder[PATH_MAX - 32];
	int n;

	if (base && *base == '/')
		n = snprintf(folder, sizeof(folder), "%s/gpuq", base);
	else if (home && *home == '/')
		n = snprintf(folder, sizeof(folder), "%s/.cache/gpuq", home);
	else
		return false;
	if (n < 0 || (size_t)n >= sizeof(folder) - 8)
		return false;
	if (make) {
		for (char *p = folder + 1; *p; p++)
			if (*p == '/') {
				*p = '\0';
				mkdir(folder, 0700);
				*p = '/';
			}
		mkdir(folder, 0700);
	}
	snprintf(out, PATH_MAX, "%s/code-%016" PRIx64, folder, h);
	return true;
}

static void recall(const char *dir, struct packed *out)
{
	char path[PATH_MAX], line[PATH_MAX + 200];
	struct packed p = { .settled = 1 };
	FILE *f = cache_path(dir, false, path) ? fopen(path, "re") : NULL;
	int at = 0;

	if (f && fgets(line, sizeof(line), f) &&
	    sscanf(line, "%64[0-9a-f] %64[0-9a-f] %" SCNd64 " %n", p.trace, p.digest, &p.bytes,
		   &at) >= 3 &&
	    at > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line + at, dir) == 0)
			*out = p;
	}
	if (f)
		fclose(f);
}

/* A directory that cannot be remembered is packed again the next time. */
static void remember(const char *dir, const struct packed *p)
{
	char path[PATH_MAX], fresh[PATH_MAX + 16];
	FILE *f;
	int fd;

	if (!p->settled || strchr(dir, '\n') || !cache_path(dir, true, path))
		return;
	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
	fd = mkostemp(fresh, O_CLOEXEC);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		if (fd >= 0)
			close(fd);
		return;
	}
	fprintf(f, "%s %s %" PRId64 " %s\n", p->trace, p->digest, p->bytes, dir);
	if (fclose(f) != 0 || rename(fresh, path) != 0)
		unlink(fresh);
}

/* ---- packing ---- */

static void __attribute__((noreturn))
run_pack(const char *dir, const char *trace, int archive, int out, int err)
{
	const char *argv[] = { PACK, dir, *trace ? trace : NULL, NULL };
	const char *path;
	/* One of them may be where another is to be. */
	const int high = fcntl(archive, F_DUPFD, 10);

	if (high < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ||
	    dup2(high, ARCHIVE_FD) < 0)
		_exit(126);
	path = file_exec_beside(PACK, (char *const *)(uintptr_t)argv);
	dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
	_exit(127);
}

/* Read what it said, which is short. */
static void read_all(int fd, char *out, size_t room)
{
	size_t n = 0;
	ssize_t k;

	while ((k = read(fd, out + n, room - 1 - n)) > 0 || (k < 0 && errno == EINTR))
		n += k > 0 ? (size_t)k : 0;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/* Pack the directory into archive, unless its trace is still the one given: then digest of *out stays. */
static int pack(const char *dir, const char *trace, int archive, struct packed *out,
		struct gpuq_err *err)
{
	int said[2] = { -1, -1 }, wrong[2] = { -1, -1 };
	char text[300], why[420];
	struct packed p = { .bytes = 0 };
	int status = 0, n;
	pid_t pid, got;

	if (pipe2(said, O_CLOEXEC) != 0 || pipe2(wrong, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
		const int no = errno;

		for (int i = 0; i < 2; i++) {
			if (said[i] >= 0)
				close(said[i]);
			if (wrong[i] >= 0)
				close(wrong[i]);
		}
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", PACK, strerror(no));
	}
	if (pid == 0)
		run_pack(dir, trace, archive, said[1], wrong[1]);
	close(said[1]);
	close(wrong[1]);
	read_all(said[0], text, sizeof(text));
	read_all(wrong[0], why, sizeof(why));
	close(said[0]);
	close(wrong[0]);
	while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	if (got < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "code", "--code: %s",
				       *why ? why : PACK " was stopped");
	n = sscanf(text, "%64[0-9a-f] %64[0-9a-f] %" SCNd64 " %d", p.trace, p.digest, &p.bytes,
		   &p.settled);
	if (n == 4)
		*out = p;
	else if (n != 1 || strcmp(p.trace, trace) != 0)
		return gpuq_fail(err, GPUQ_EPROTO, "%s: not what it should print", PACK);
	return 0;
}

/* ---- sending ---- */

static int put(struct cli *c, const struct packed *p, int64_t offset, const void *bytes, size_t n,
	       int64_t *have, bool *done, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *map = gpuq_map(&a), *reply = NULL;
	int rc;

	gpuq_put(&a, map, "digest", gpuq_str(&a, p->digest));
	gpuq_put(&a, map, "bytes", gpuq_int(&a, p->bytes));
	if (bytes) {
		gpuq_put(&a, map, "offset", gpuq_int(&a, offset));
		gpuq_put(&a, map, "data", gpuq_bin(&a, bytes, n));
	}
	rc = cli_call(c, "code.put", map, "", &reply, err);
	if (rc == 0) {
		*have = gpuq_get_int(reply, "have", 0);
		*done = gpuq_get_bool(reply, "done", false);
	}
	gpuq_arena_done(&a);
	if (rc == GPUQ_ENOMETHOD)
		return gpuq_fail(err, rc, "--code: this server is too old for it");
	return rc;
}

static int send_all(struct cli *c, const struct packed *p, int archive, struct gpuq_err *err)
{
	char *piece = malloc(GPUQ_CODE_PIECE_BYTES);
	int64_t at = 0, have = 0;
	bool done = false;
	int rc = piece ? 0 : gpuq_no_memory(err);

	while (rc == 0 && !done) {
		const ssize_t n = pread(archive, piece, GPUQ_CODE_PIECE_BYTES, at);

		if (n <= 0)
			rc = gpuq_fail(
				err, GPUQ_EBUSY,
				"--code: the directory is being sent by another gpuq: try again");
		else
			rc = put(c, p, at, piece, (size_t)n, &have, &done, err);
		/* Another gpuq may send the same: then both go on where it is. */
		at = have;
	}
	free(piece);
	return rc;
}

/* Carry the directory, unless p->trace tells that it is there already. */
static int carry(struct cli *c, const char *dir, struct packed *p, bool dry_run,
		 struct gpuq_err *err)
{
	const int archive = memfd_create("gpuq-code", MFD_CLOEXEC);
	bool done = dry_run;
	int64_t have;
	int rc = 0;

	if (archive < 0)
		return gpuq_fail(err, GPUQ_EIO, "--code: %s", strerror(errno));
	rc = pack(dir, p->trace, archive, p, err);
	if (rc == 0 && !dry_run)
		rc = put(c, p, 0, NULL, 0, &have, &done, err);
	/* The trace was known, the server has forgotten it. */
	if (rc == 0 && !done && lseek(archive, 0, SEEK_END) == 0)
		rc = pack(dir, "", archive, p, err);
	if (rc == 0 && !done)
		rc = send_all(c, p, archive, err);
	if (rc == 0 && !dry_run)
		remember(dir, p);
	close(archive);
	return rc;
}

/* ---- the job's part ---- */

/* Return the part of cwd below dir; NULL = it is not below. */
static const char *below(const char *dir, const char *cwd)
{
	const size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return cwd + 1;
	if (strncmp(dir, cwd, n) != 0 || (cwd[n] && cwd[n] != '/'))
		return NULL;
	return cwd[n] ? cwd + n + 1 : "";
}

static int find_dir(struct cli *c, struct gpuq_spec *spec, const char **dir, struct gpuq_err *err)
{
	const char *asked = spec->code.dir, *cwd = spec->context.cwd, *sub;
	char real[PATH_MAX], here[PATH_MAX];

	if (*asked != '/' && cwd)
		asked = gpuq_arena_printf(&c->arena, "%s/%s", cwd, asked);
	if (!asked)
		return gpuq_no_memory(err);
	if (!realpath(asked, real))
		return gpuq_fail_field(err, GPUQ_EINVAL, "code", "--code: %s: %s", spec->code.dir,
				       strerror(errno));
	*dir = gpuq_arena_strdup(&c->arena, real);
	sub = cwd && realpath(cwd, here) ? below(real, here) : NULL;
	/* A stored job has it already. */
	if (!spec->code.subdir && sub && *sub)
		spec->code.subdir = gpuq_arena_strdup(&c->arena, sub);
	return *dir ? 0 : gpuq_no_memory(err);
}

/* A job that was stored before: as long as the server has its files, they are taken. */
static int is_there(struct cli *c, const struct gpuq_spec_code *code, bool *there,
		    struct gpuq_err *err)
{
	struct packed p = { .bytes = code->bytes };
	int64_t have;

	*there = false;
	if (!code->digest || code->bytes <= 0)
		return 0;
	snprintf(p.digest, sizeof(p.digest), "%s", code->digest);
	return put(c, &p, 0, NULL, 0, &have, there, err);
}

int code_carry(struct cli *c, struct gpuq_spec *spec, bool dry_run, struct gpuq_err *err)
{
	const char *was = spec->code.digest, *dir;
	struct packed p = { .bytes = 0 };
	bool there = false;
	int rc;

	if (!spec->code.dir)
		return 0;
	rc = is_there(c, &spec->code, &there, err);
	if (rc < 0 || there)
		return rc;
	rc = find_dir(c, spec, &dir, err);
	if (rc < 0)
		return rc;
	recall(dir, &p);
	rc = carry(c, dir, &p, dry_run, err);
	if (rc < 0)
		return rc;
	if (was && strcmp(was, p.digest) != 0)
		cli_say("warning: %s has changed since the job was submitted, and what it carried "
			"then is not kept",
			dir);
	spec->code.dir = dir;
	spec->code.digest = gpuq_arena_strdup(&c->arena, p.digest);
	spec->code.bytes = p.bytes;
	return spec->code.digest ? 0 : gpuq_no_memory(err);
}
