#include "config.h"

#include "tests/unit/local_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void copy(char *to, size_t room, const char *from)
{
	snprintf(to, room, "%.*s", (int)room - 1, from ? from : "");
}

struct heard *world_pod(struct world *w, const char *name)
{
	for (int i = 0; i < w->n_pods; i++)
		if (strcmp(w->pods[i].name, name) == 0)
			return &w->pods[i];
	if (w->n_pods == WORLD_PODS_MAX)
		abort();
	copy(w->pods[w->n_pods].name, sizeof(w->pods[0].name), name);
	return &w->pods[w->n_pods++];
}

static void take(struct world *w, const struct pod_fact *p, bool gone)
{
	struct heard *h = world_pod(w, p->name);

	copy(h->uid, sizeof(h->uid), p->uid);
	copy(h->token, sizeof(h->token), p->token);
	copy(h->reason, sizeof(h->reason), p->reason);
	copy(h->message, sizeof(h->message), p->message);
	h->phase = p->phase;
	h->fault = p->fault;
	h->leaving = p->leaving;
	h->gone = gone;
	h->exit_code = p->exit_code;
	h->start_us = p->start_us;
	h->end_us = p->end_us;
	h->gpus_milli = p->gpus_milli;
	h->n_devices = p->n_devices;
	for (size_t i = 0; i < p->n_devices && i < 16; i++)
		h->devices[i] = p->devices[i];
	h->n_seen++;
	if (w->on_pod)
		w->on_pod(w, h);
}

static void on_node_seen(void *arg, const struct node_fact *n)
{
	struct world *w = arg;

	copy(w->node, sizeof(w->node), n->name);
	copy(w->node_note, sizeof(w->node_note), n->note);
	w->cpu_milli = n->cpu_milli;
	w->memory_bytes = n->memory_bytes;
	w->n_devices = n->n_devices < 16 ? n->n_devices : 16;
	for (size_t i = 0; i < w->n_devices; i++) {
		w->devices[i] = n->devices[i];
		copy(w->uuids[i], sizeof(w->uuids[i]), n->devices[i].uuid);
		copy(w->products[i], sizeof(w->products[i]), n->devices[i].product);
		w->devices[i].uuid = w->uuids[i];
		w->devices[i].product = w->products[i];
	}
	w->has_links = n->links != NULL && n->n_devices <= 16;
	if (w->has_links)
		memcpy(w->links, n->links, n->n_devices * n->n_devices);
	for (size_t i = 0; i < n->labels.n; i++)
		if (strcmp(n->labels.keys[i], "kubernetes.io/arch") == 0)
			copy(w->arch, sizeof(w->arch), n->labels.vals[i]);
}

static void on_node_gone(void *arg, const char *name)
{
	(void)arg, (void)name;
}

static void on_pod_seen(void *arg, const struct pod_fact *p)
{
	take(arg, p, false);
}

static void on_pod_gone(void *arg, const struct pod_fact *p)
{
	take(arg, p, true);
}

static void on_list_done(void *arg)
{
	struct world *w = arg;

	w->lists++;
}

static void on_stale(void *arg, int64_t since_us, const char *why)
{
	(void)arg, (void)since_us, (void)why;
}

static void on_created(void *arg, const char *pod, enum ask_outcome o, const char *uid,
		       const char *message)
{
	struct heard *h = world_pod(arg, pod);

	(void)uid;
	h->created = o;
	h->n_created++;
	copy(h->created_message, sizeof(h->created_message), message);
}

static void on_deleted(void *arg, const char *pod, enum ask_outcome o, const char *message)
{
	struct heard *h = world_pod(arg, pod);

	(void)message;
	h->deleted = o;
	h->n_deleted++;
}

static bool listed(struct world *w, void *arg)
{
	return w->lists > *(int *)arg;
}

static void on_turn(void *arg)
{
	struct world *w = arg;

	if (w->until && w->until(w, w->until_arg))
		loop_stop(w->loop, 0);
}

static void on_hang(void *arg)
{
	struct world *w = arg;

	w->hung = true;
	loop_stop(w->loop, 1);
}

/* Files change without a turn of the loop: look now and then. */
static void on_beat(void *arg)
{
	struct world *w = arg;

	w->beat = loop_after(w->loop, 20000, on_beat, w);
}

bool world_wait(struct world *w, bool (*fn)(struct world *w, void *arg), void *arg)
{
	struct loop_timer *hang = loop_after(w->loop, WORLD_HANG_S * INT64_C(1000000), on_hang, w);

	w->hung = false;
	w->until = fn;
	w->until_arg = arg;
	on_beat(w);
	loop_kick(w->loop);
	loop_run(w->loop);
	loop_cancel(w->beat);
	if (!w->hung)
		loop_cancel(hang);
	w->until = NULL;
	return !w->hung;
}

static void start(struct world *w)
{
	const struct cluster_sink sink = {
		.arg = w,
		.node_seen = on_node_seen,
		.node_gone = on_node_gone,
		.pod_seen = on_pod_seen,
		.pod_gone = on_pod_gone,
		.list_done = on_list_done,
		.stale = on_stale,
		.created = on_created,
		.deleted = on_deleted,
	};
	const struct cluster_local_opts o = {
		.dir = w->dir,
		.shepherd = w->shepherd,
		.gpus = w->gpus,
		.cluster_id = "00c0ffee",
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	int before = w->lists;

	if (loop_new(&w->loop, &err) != 0) {
		fprintf(stderr, "no loop: %s\n", err.text);
		abort();
	}
	if (w->clock.boot[0]) /* as gpuqd goes on from the relation that it stored */
		loop_clock_resume(w->loop, &w->clock, 0);
	if (cluster_local_new(w->loop, &o, &w->c, &err) != 0 ||
	    w->c->ops->start(w->c, &sink, &err) != 0) {
		fprintf(stderr, "no cluster: %s\n", err.text);
		abort();
	}
	loop_add_hook(w->loop, on_turn, w);
	if (!world_wait(w, listed, &before)) {
		fprintf(stderr, "no first list\n");
		abort();
	}
}

void world_open(struct world *w, const char *dir, int64_t gpus)
{
	char exe[4000];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	char where[sizeof(w->dir)] = "";

	if (dir)
		copy(where, sizeof(where), dir); /* it may be w's own */
	memset(w, 0, sizeof(*w));
	exe[n > 0 ? n : 0] = '\0';
	*strrchr(exe, '/') = '\0';
	snprintf(w->shepherd, sizeof(w->shepherd), "%s/local_shepherd", exe);
	signal(SIGPIPE, SIG_IGN);
	w->gpus = gpus;
	if (dir) {
		copy(w->dir, sizeof(w->dir), where);
	} else {
		const char *tmp = getenv("TMPDIR");

		snprintf(w->dir, sizeof(w->dir), "%.80s/gpuq-local-XXXXXX", tmp ? tmp : "/tmp");
		if (!mkdtemp(w->dir))
			abort();
		chmod(w->dir, 0711);
	}
	start(w);
}

void world_close(struct world *w)
{
	w->c->ops->free(w->c);
	w->clock = *loop_clock(w->loop);
	loop_free(w->loop);
	w->c = NULL;
	w->loop = NULL;
}

void world_restart(struct world *w)
{
	world_close(w);
	start(w);
}

static bool nothing_left(struct world *w, void *arg)
{
	(void)arg;
	for (int i = 0; i < w->n_pods; i++)
		if (!w->pods[i].gone && w->pods[i].uid[0])
			return false;
	return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void world_done(struct world *w)
{
	w->on_pod = NULL;
	for (int i = 0; i < w->n_pods; i++) {
		const struct pod_ref ref = { .name = w->pods[i].name, .token = w->pods[i].token };

		if (!w->pods[i].gone && w->pods[i].uid[0])
			w->c->ops->pod_forget(w->c, &ref);
	}
	world_wait(w, nothing_left, NULL);
	world_close(w);
	nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_ended(struct world *w, void *arg)
{
	const struct heard *h = world_pod(w, arg);

	return h->phase == POD_SUCCEEDED || h->phase == POD_FAILED;
}

static bool is_running(struct world *w, void *arg)
{
	return world_pod(w, arg)->phase == POD_RUNNING;
}

static bool is_created(struct world *w, void *arg)
{
	return world_pod(w, arg)->n_created > 0;
}

static bool is_gone(struct world *w, void *arg)
{
	return world_pod(w, arg)->gone;
}

static bool has_content(struct world *w, void *arg)
{
	struct stat st;

	(void)w;
	return stat(arg, &st) == 0 && st.st_size > 0;
}

bool world_wait_ended(struct world *w, const char *pod)
{
	return world_wait(w, is_ended, (void *)pod);
}

bool world_wait_running(struct world *w, const char *pod)
{
	return world_wait(w, is_running, (void *)pod);
}

bool world_wait_created(struct world *w, const char *pod)
{
	return world_wait(w, is_created, (void *)pod);
}

bool world_wait_gone(struct world *w, const char *pod)
{
	return world_wait(w, is_gone, (void *)pod);
}

bool world_wait_file(struct world *w, const char *path)
{
	return world_wait(w, has_content, (void *)path);
}

void wish_init(struct wish *wish, struct world *w, uint32_t job, const char *command)
{
	memset(wish, 0, sizeof(*wish));
	snprintf(wish->name, sizeof(wish->name), "gpuq-00c0ffee-%u-0-0", job);
	snprintf(wish->token, sizeof(wish->token), "%032x", job);
	wish->argv[0] = "sh";
	wish->argv[1] = "-c";
	wish->argv[2] = command;
	wish->env_keys[0] = "PATH";
	wish->env_vals[0] = "/usr/local/bin:/usr/bin:/bin";
	wish->group.name = "main";
	wish->group.pods_min = wish->group.pods_max = 1;
	wish->group.command.items = wish->argv;
	wish->group.command.n = 3;
	wish->spec.name = "test";
	wish->spec.groups = &wish->group;
	wish->spec.n_groups = 1;
	wish->spec.context.cwd = w->dir;
	wish->spec.context.umask = 022;
	wish->spec.context.environ.keys = wish->env_keys;
	wish->spec.context.environ.vals = wish->env_vals;
	wish->spec.context.environ.n = 1;
	wish->order.name = wish->name;
	wish->order.token = wish->token;
	wish->order.cluster_id = "00c0ffee";
	wish->order.namespace_ = "";
	wish->order.node = w->node;
	wish->order.devices = wish->devices;
	wish->order.job = job;
	wish->order.array_index = -1;
	wish->order.n_pods = 1;
	wish->order.queue = "default";
	wish->order.user = "tester";
	wish->order.uid = (uint32_t)getuid();
	wish->order.gid = (uint32_t)getgid();
	wish->order.spec = &wish->spec;
	wish->order.env.keys = wish->own_keys;
	wish->order.env.vals = wish->own_vals;
	wish->order.time_limit_us = INT64_MAX;
	wish->order.grace_us = 5000000;
}

void world_create(struct world *w, const struct wish *wish)
{
	w->c->ops->pod_create(w->c, &wish->order);
}

char *world_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t room = 1 << 20, n = 0;
	char *out = calloc(1, room + 1);
	ssize_t k;

	while (out && fd >= 0 && n < room && (k = read(fd, out + n, room - n)) > 0)
		n += (size_t)k;
	if (fd >= 0)
		close(fd);
	if (!out)
		abort();
	return out;
}

char *world_path(const struct world *w, const char *fmt, ...)
{
	static char ring[8][512];
	static unsigned at;
	char *out = ring[at++ % 8];
	int n = snprintf(out, sizeof(ring[0]), "%s/", w->dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + n, sizeof(ring[0]) - (size_t)n, fmt, ap);
	va_end(ap);
	return out;
}

int world_processes(const char *uid)
{
	char mark[64];
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int found = 0;

	snprintf(mark, sizeof(mark), "GPUQ_POD_UID=%s", uid);
	while (dir && (e = readdir(dir))) {
		char path[300], *env;
		size_t n;

		if (atoi(e->d_name) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/environ", e->d_name);
		env = world_read(path);
		for (n = 0; env[n]; n += strlen(env + n) + 1)
			if (strcmp(env + n, mark) == 0)
				found++;
		free(env);
	}
	if (dir)
		closedir(dir);
	return found;
}
