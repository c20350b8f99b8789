#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/local_log.h"
#include "gpuqd/cluster/local/local_kept.h"
#include "gpuqd/cluster/local/local_files.h"
#include "gpuqd/cluster/local/local_own.h"
#include "gpuqd/cluster/local/local_pod.h"
#include "gpuqd/cluster/local/shepherd/log_reader.h"
#include "gpuqd/cluster/local/shepherd/shepherd_log.h"
#include "libgpuq/grow.h"

#define CHUNK_BYTES 32768
#define CHUNKS_A_TURN 8 /* then others have their turn */

/* One reader. It reads POD.log and then, when the job sent its output to a file of its
 * own, that file, through a process of its owner's; which is found out when the pod has
 * begun. */
struct cluster_log {
	struct local *l;
	char *pod;
	char stem[LOG_STEM_BYTES]; /* of its files */
	bool follow, paused;
	bool done; /* the end or an error was reported */
	bool telling, closed; /* fn runs; it closed us meanwhile */
	int64_t tail_lines;
	uint32_t uid, gid; /* of the job's owner */
	log_fn fn;
	void *arg;
	int fd; /* -1 = not there yet */
	struct local_own *own; /* reads the job's own file; NULL = POD.log is read */
	int64_t offset;
	int wd;
	struct loop_timer *turn;
	struct cluster_log *next;
};

static void pump(void *arg);

static void pump_soon(struct cluster_log *log)
{
	if (!log->turn && !log->paused && !log->done)
		log->turn = loop_after(log->l->loop, 0, pump, log);
}

static int open_kept(const struct cluster_log *log)
{
	char name[300];

	snprintf(name, sizeof(name), "%s.log", log->stem);
	return openat(log->l->logs_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static void watch(struct cluster_log *log)
{
	char path[64];

	if (!log->follow || log->l->inotify_fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", log->fd);
	log->wd = inotify_add_watch(log->l->inotify_fd, path, IN_MODIFY);
}

/* Readers of one file share its watch: the last to go removes it. */
static void unwatch(struct cluster_log *log)
{
	const struct cluster_log *o = log->l->logs;

	while (o && (o == log || o->wd != log->wd))
		o = o->next;
	if (log->wd >= 0 && !o)
		inotify_rm_watch(log->l->inotify_fd, log->wd);
	log->wd = -1;
}

static void let_go(struct cluster_log *log)
{
	unwatch(log);
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
	if (log->own)
		local_own_free(log->own);
	log->own = NULL;
}

/* Nothing more will be written: the pod has ended, or is here no more. */
static bool is_over(const struct cluster_log *log)
{
	const struct local_pod *p = local_pod_find(log->l, log->pod);

	return !p || p->state.how != HOW_NOT;
}

/* Open the kept file. False: not there (yet). */
static bool open_log(struct cluster_log *log)
{
	char text[LOG_TARGET_BYTES_MAX];
	struct log_target unused;

	log->fd = open_kept(log);
	if (log->fd < 0)
		return false;
	log->offset = 0;
	/* With a file of the job's own the kept one is empty or holds one message. */
	if (log->tail_lines >= 0 && !shepherd_log_target(log->l->logs_fd, log->stem, text, &unused))
		log->offset = log_tail(log->fd, 0, log->tail_lines);
	watch(log);
	return true;
}

static void log_free(struct cluster_log *log)
{
	free(log->pod);
	free(log);
}

/* Pass data to the reader, which may close the log from inside: true if it wants more and still
 * exists. */
static bool tell(struct cluster_log *log, const char *bytes, size_t n, const struct gpuq_err *err)
{
	bool more;

	log->done = n == 0;
	log->telling = true;
	more = log->fn(log->arg, bytes, n, err);
	log->telling = false;
	if (log->closed) {
		log_free(log);
		return false;
	}
	log->paused = !more;
	return more && !log->done;
}

enum sent { SENT, NOTHING, STOP };

/* One chunk to the reader. */
static enum sent send_chunk(struct cluster_log *log)
{
	char chunk[CHUNK_BYTES];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct stat st;
	ssize_t n;
	off_t data;

	if (fstat(log->fd, &st) == 0 && st.st_size < log->offset)
		log->offset = 0; /* it was emptied and begins anew */
	data = lseek(log->fd, log->offset, SEEK_DATA);
	if (data > log->offset) {
		n = snprintf(chunk, sizeof(chunk),
			     "[gpuq: %lld bytes of older output are no longer kept]\n",
			     (long long)(data - log->offset));
		log->offset = data;
	} else {
		n = pread(log->fd, chunk, sizeof(chunk), log->offset);
		if (n > 0)
			log->offset += n;
	}
	if (n > 0)
		return tell(log, chunk, (size_t)n, NULL) ? SENT : STOP;
	if (n == 0 || errno == EINTR)
		return NOTHING;
	gpuq_fail(&err, GPUQ_EIO, "cannot read the output of %s: %s", log->pod, strerror(errno));
	tell(log, NULL, 0, &err);
	return STOP;
}

static void on_own(void *arg)
{
	pump_soon(arg);
}

/* One chunk of the job's own file. A file that is not there any more is an empty one. */
static enum sent send_own(struct cluster_log *log, bool over)
{
	char chunk[CHUNK_BYTES];
	ssize_t n = local_own_read(log->own, chunk, sizeof(chunk));

	if (n > 0)
		return tell(log, chunk, (size_t)n, NULL) ? SENT : STOP;
	if (n == 0)
		return tell(log, NULL, 0, NULL), STOP;
	if (over)
		local_own_last(log->own);
	return NOTHING;
}

/* The kept file is read so far. Go on with the job's own, if it has one: then it
 * writes nothing more to the kept one. */
static enum sent turn_to_own(struct cluster_log *log)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char text[LOG_TARGET_BYTES_MAX];
	struct log_request r = { .uid = log->uid, .gid = log->gid, .tail_lines = log->tail_lines };

	if (log->uid == LOG_READER_NO_ID ||
	    !shepherd_log_target(log->l->logs_fd, log->stem, text, &r.target))
		return NOTHING;
	let_go(log);
	log->own = local_own_open(log->l, &r, log->follow, on_own, log);
	if (log->own)
		return SENT;
	gpuq_fail(&err, GPUQ_EIO, "cannot start a process that reads the output of %s", log->pod);
	tell(log, NULL, 0, &err);
	return STOP;
}

static void pump(void *arg)
{
	struct cluster_log *log = arg;

	log->turn = NULL;
	for (int i = 0; i < CHUNKS_A_TURN; i++) {
		/* Asked before reading: what was written until then is read below. */
		const bool over = is_over(log) || !log->follow;
		enum sent sent = NOTHING;

		if (log->own)
			sent = send_own(log, over);
		else if (log->fd >= 0 || open_log(log))
			sent = send_chunk(log);
		if (sent == NOTHING && !log->own)
			sent = turn_to_own(log);
		if (sent == STOP)
			return;
		if (sent == SENT)
			continue;
		if (over && !log->own)
			tell(log, NULL, 0, NULL);
		return; /* else inotify, the owner's process or the tick calls again */
	}
	pump_soon(log);
}

struct cluster_log *local_log_open(struct cluster *c, const struct pod_ref *ref,
				   const struct log_opts *opts, log_fn fn, void *arg,
				   struct gpuq_err *err)
{
	struct local *l = (struct local *)c;
	char text[LOG_TARGET_BYTES_MAX];
	struct log_target target;
	struct cluster_log *log;

	if (!local_name_ok(ref->name)) {
		gpuq_fail(err, GPUQ_EINVAL, "'%s' is not a pod's name", ref->name);
		return NULL;
	}
	if (opts->timestamps || opts->since_us) {
		gpuq_fail(err, GPUQ_EINVAL,
			  "the local cluster keeps output as it is, without times: leave out %s",
			  opts->timestamps ? "timestamps" : "since");
		return NULL;
	}
	log = calloc(1, sizeof(*log));
	if (log)
		log->pod = strdup(ref->name);
	if (!log || !log->pod) {
		free(log);
		gpuq_fail(err, GPUQ_ENOMEM, "no memory to read the output of %s", ref->name);
		return NULL;
	}
	if (local_kept_stem(l, ref, opts->uid, log->stem, err) < 0) {
		free(log->pod);
		free(log);
		return NULL;
	}
	if (!(ref->uid && *ref->uid) && !(ref->token && *ref->token) &&
	    shepherd_log_target(l->logs_fd, log->stem, text, &target)) {
		/* Later attempts have written to it since. */
		gpuq_fail(err, GPUQ_EINVAL, "pod %s wrote its output to %s", ref->name,
			  target.path);
		free(log->pod);
		free(log);
		return NULL;
	}
	log->fd = -1;
	log->l = l;
	log->follow = opts->follow;
	log->tail_lines = opts->tail_lines;
	log->uid = opts->uid;
	log->gid = opts->gid;
	log->fn = fn;
	log->arg = arg;
	log->wd = -1;
	log->next = l->logs;
	l->logs = log;
	pump_soon(log);
	return log;
}

void local_log_resume(struct cluster_log *log)
{
	log->paused = false;
	pump_soon(log);
}

void local_log_close(struct cluster_log *log)
{
	struct cluster_log **at = &log->l->logs;

	while (*at != log)
		at = &(*at)->next;
	*at = log->next;
	let_go(log);
	loop_cancel(log->turn);
	if (log->telling)
		log->closed = true;
	else
		log_free(log);
}

void local_log_poke(struct local *l, const char *pod)
{
	for (struct cluster_log *log = l->logs; log; log = log->next)
		if (!pod || strcmp(log->pod, pod) == 0)
			pump_soon(log);
}

void local_log_event(struct local *l, int wd)
{
	for (struct cluster_log *log = l->logs; log; log = log->next)
		if (log->wd == wd)
			pump_soon(log);
}

/* ---- keeping and dropping ---- */

struct kept {
	char *pod;
	int64_t bytes, at_s;
};

static int by_age(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static void drop(struct local *l, const char *pod)
{
	static const char *const suffixes[] = { "log", "to" };
	char name[300];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(name, sizeof(name), "%s.%s", pod, suffixes[i]);
		unlinkat(l->logs_fd, name, 0);
	}
}

static void drop_oldest(struct local *l, struct kept *all, size_t n, int64_t bytes)
{
	size_t left = n, dropped = 0;

	qsort(all, n, sizeof(*all), by_age);
	for (size_t i = 0; i < n; i++) {
		if (bytes <= LOCAL_LOGS_BYTES_MAX && left <= LOCAL_LOGS_FILES_MAX)
			break;
		if (local_kept_in_use(l, all[i].pod))
			continue;
		drop(l, all[i].pod);
		bytes -= all[i].bytes;
		left--;
		dropped++;
	}
	if (dropped)
		log_info("local.logs_dropped", "count=%zu bytes_left=%lld", dropped,
			 (long long)bytes);
}

void local_log_trim(struct local *l)
{
	int fd = openat(l->logs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct kept *all = NULL;
	size_t n = 0, room = 0;
	int64_t bytes = 0;
	struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		const size_t len = strlen(e->d_name);
		struct stat st;

		if (len < 5 || strcmp(e->d_name + len - 4, ".log") != 0 ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (!grow_to(&all, &room, n + 1))
			break;
		all[n].pod = strndup(e->d_name, len - 4);
		all[n].bytes = (int64_t)st.st_blocks * 512; /* holes cost nothing */
		all[n].at_s = st.st_mtime;
		if (!all[n].pod)
			break;
		bytes += all[n++].bytes;
	}
	if (dir)
		closedir(dir);
	if (n > LOCAL_LOGS_FILES_MAX || bytes > LOCAL_LOGS_BYTES_MAX)
		drop_oldest(l, all, n, bytes);
	for (size_t i = 0; i < n; i++)
		free(all[i].pod);
	free(all);
}
