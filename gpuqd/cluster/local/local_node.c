#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/local_node.h"
#include "gpuqd/cluster/local/local_launch.h"
#include "libgpuq/grow.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

#define PROBE_BYTES_MAX 65536

/* A process of ours that asks the driver; see devices.h. */
struct local_probe {
	struct local *l;
	pid_t pid;
	int fd;
	struct event *ev;
	struct loop_timer *timeout;
	struct gpuq_buf text;
};

/* ---- processors and memory ---- */

static bool read_text(const char *path, char *out, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, room - 1) : -1;

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The path of our control group: version 2 ("0::/x"), or a version 1 controller. */
static bool own_cgroup(const char *controller, char *out, size_t room)
{
	char line[1024];
	FILE *f = fopen("/proc/self/cgroup", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		found = strcmp(names + 1, controller) == 0;
		if (found)
			snprintf(out, room, "%s", strcmp(path, "/") == 0 ? "" : path);
	}
	if (f)
		fclose(f);
	return found;
}

/* Call fn with the text of file in our group and in each above it: all of them limit. */
static int64_t least(const char *root, const char *controller, const char *file,
		     int64_t (*fn)(const char *dir, const char *text))
{
	char group[768], dir[1024], path[1152], text[128];
	int64_t best = INT64_MAX;

	if (!own_cgroup(controller, group, sizeof(group)))
		return best;
	for (;;) {
		char *slash;

		snprintf(dir, sizeof(dir), "%s%s", root, group);
		snprintf(path, sizeof(path), "%s/%s", dir, file);
		if (read_text(path, text, sizeof(text))) {
			int64_t v = fn(dir, text);

			if (v > 0 && v < best)
				best = v;
		}
		slash = strrchr(group, '/');
		if (!slash)
			return best;
		*slash = '\0';
	}
}

static int64_t quota_v2(const char *dir, const char *text)
{
	long long quota, period;

	(void)dir;
	if (sscanf(text, "%lld %lld", &quota, &period) != 2 || period <= 0)
		return INT64_MAX; /* "max 100000" */
	return quota * 1000 / period;
}

static int64_t quota_v1(const char *dir, const char *text)
{
	char path[1152], other[64];
	long long quota = strtoll(text, NULL, 10), period;

	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
	if (quota <= 0 || !read_text(path, other, sizeof(other)))
		return INT64_MAX;
	period = strtoll(other, NULL, 10);
	return period > 0 ? quota * 1000 / period : INT64_MAX;
}

static int64_t plain_number(const char *dir, const char *text)
{
	(void)dir;
	return *text >= '0' && *text <= '9' ? strtoll(text, NULL, 10) : INT64_MAX;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t cpu_milli(void)
{
	cpu_set_t set;
	int64_t n = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t milli;

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		n = CPU_COUNT(&set);
	milli = (n > 0 ? n : 1) * 1000;
	milli = smaller(milli, least("/sys/fs/cgroup", "", "cpu.max", quota_v2));
	milli = smaller(milli, least("/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_quota_us", quota_v1));
	return smaller(milli, least("/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct", "cpu.cfs_quota_us",
				    quota_v1));
}

/* ---- other resources ---- */

#define HUGE_MAX 8 /* sizes of huge pages */

/* List the reserved huge pages of each size, and the file system that the files of jobs are on. Whatever else a
 * machine may have, nothing says how much of it there is. */
static size_t read_resources(const struct local *l, char names[HUGE_MAX][64],
			     struct gpuq_amount out[HUGE_MAX + 1])
{
	static const char root[] = "/sys/kernel/mm/hugepages";
	DIR *dir = opendir(root);
	struct dirent *e;
	struct statvfs fs;
	size_t n = 0;

	while (dir && n < HUGE_MAX && (e = readdir(dir))) {
		char path[512], text[64], size[32];
		long long kib, pages;

		snprintf(path, sizeof(path), "%s/%.200s/nr_hugepages", root, e->d_name);
		if (sscanf(e->d_name, "hugepages-%lldkB", &kib) != 1 || kib <= 0 ||
		    kib > INT64_MAX >> 20 || !read_text(path, text, sizeof(text)))
			continue;
		pages = strtoll(text, NULL, 10);
		if (pages <= 0 || pages > (INT64_MAX >> 11) / kib)
			continue;
		gpuq_bytes_print((int64_t)kib << 10, size, sizeof(size));
		snprintf(names[n], sizeof(names[n]), "hugepages-%s", size);
		out[n] = (struct gpuq_amount){ names[n], (int64_t)pages * kib << 10 };
		n++;
	}
	if (dir)
		closedir(dir);
	if (statvfs(l->dir, &fs) == 0 && fs.f_frsize > 0 &&
	    fs.f_blocks <= (fsblkcnt_t)(INT64_MAX / 2) / fs.f_frsize)
		out[n++] = (struct gpuq_amount){ GPUQ_RESOURCE_STORAGE,
						 (int64_t)(fs.f_blocks * fs.f_frsize) };
	return gpuq_amounts_sort(out, n);
}

static int64_t memory_bytes(void)
{
	char line[256];
	long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	int64_t bytes;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemTotal: %lld kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	bytes = kib > 0 ? (int64_t)kib * 1024 : INT64_MAX;
	bytes = smaller(bytes, least("/sys/fs/cgroup", "", "memory.max", plain_number));
	bytes = smaller(bytes, least("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes",
				     plain_number));
	return bytes == INT64_MAX ? 0 : bytes;
}

/* ---- what is reported ---- */

/* Kubernetes' words for machines where uname has its own. */
static const char *arch_word(const char *machine)
{
	static const struct {
		const char *machine, *word;
	} words[] = {
		{ "x86_64", "amd64" }, { "aarch64", "arm64" },   { "i686", "386" },
		{ "armv7l", "arm" },   { "ppc64le", "ppc64le" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(machine, words[i].machine) == 0)
			return words[i].word;
	return machine;
}

/* A square of speeds; NULL unless every device tells of each other one. */
static uint8_t *links_of(const struct local_node *n)
{
	uint8_t *links;

	for (size_t i = 0; i < n->n_devices; i++)
		if (strlen(n->devices[i].links) != n->n_devices)
			return NULL;
	links = n->n_devices > 1 ? calloc(n->n_devices, n->n_devices) : NULL;
	for (size_t i = 0; links && i < n->n_devices * n->n_devices; i++)
		links[i] = (uint8_t)(n->devices[i / n->n_devices].links[i % n->n_devices] - '0');
	return links;
}

void local_node_report(struct local *l)
{
	const struct local_node *n = &l->node;
	struct device_fact *devices = calloc(n->n_devices + 1, sizeof(*devices));
	struct utsname uts = { .machine = "" };
	uint8_t *links;
	const char *keys[4] = { "kubernetes.io/hostname", "kubernetes.io/arch",
				"kubernetes.io/os" };
	const char *vals[4] = { n->name, NULL, "linux" };
	char names[HUGE_MAX][64];
	struct gpuq_amount resources[HUGE_MAX + 1];
	struct node_fact fact = {
		.name = n->name,
		.labels = { keys, vals, 3 },
		.cpu_milli = n->cpu_milli,
		.memory_bytes = n->memory_bytes,
		.max_pods = LOCAL_MAX_PODS,
		.devices = devices,
		.n_devices = n->n_devices,
		.ready = true,
		.note = n->note,
	};

	if (!devices)
		return; /* the next check reports */
	uname(&uts);
	vals[1] = arch_word(uts.machine);
	for (size_t i = 0; i < n->n_devices; i++)
		devices[i] = (struct device_fact){
			.uuid = n->devices[i].uuid,
			.product = n->devices[i].product,
			.memory_mib = n->devices[i].memory_mib,
			.healthy = n->devices[i].healthy,
		};
	/* The label that GPU feature discovery gives, so that selectors carry over. */
	if (n->n_devices && n->devices[0].product[0]) {
		keys[3] = "nvidia.com/gpu.product";
		vals[3] = n->devices[0].product;
		fact.labels.n = 4;
	}
	links = links_of(n);
	fact.links = links;
	fact.resources = resources;
	fact.n_resources = read_resources(l, names, resources);
	l->sink.node_seen(l->sink.arg, &fact);
	free(links);
	free(devices);
}

/* A device that was there keeps its index; one that answers no more is unhealthy, not
 * gone, so that the indexes of the others stay true. */
static void take_devices(struct local_node *n, struct local_device *found, size_t n_found)
{
	size_t missing = 0;

	if (n_found >= n->n_devices) {
		free(n->devices);
		n->devices = found;
		n->n_devices = n_found;
		n->note[0] = '\0';
		return;
	}
	for (size_t i = 0; i < n->n_devices; i++) {
		bool here = false;

		for (size_t k = 0; k < n_found && !here; k++)
			here = found[k].healthy && found[k].uuid[0] &&
			       strcmp(found[k].uuid, n->devices[i].uuid) == 0;
		n->devices[i].healthy = here;
		missing += !here;
	}
	snprintf(n->note, sizeof(n->note), "%zu of %zu devices do not answer", missing,
		 n->n_devices);
	free(found);
}

static bool parse_device(char *line, struct local_device *d)
{
	char *save = NULL, *field[6];

	/* Fields may be empty, which strtok would skip. */
	for (int i = 0; i < 6; i++) {
		field[i] = i == 0 ? line : save;
		if (!field[i])
			return false;
		save = strchr(field[i], '\t');
		if (save)
			*save++ = '\0';
	}
	snprintf(d->uuid, sizeof(d->uuid), "%s", field[0]);
	snprintf(d->product, sizeof(d->product), "%s", field[1]);
	d->memory_mib = strtoll(field[2], NULL, 10);
	d->healthy = field[3][0] == '1';
	snprintf(d->links, sizeof(d->links), "%s", field[4]);
	d->minor = (int)strtol(field[5], NULL, 10);
	return true;
}

static void take_lines(struct local_node *n, char *text)
{
	struct local_device *found = NULL;
	size_t count = 0, room = 0;

	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct local_device d = { .healthy = false };

		if (!parse_device(line, &d))
			continue;
		if (!grow_to(&found, &room, count + 1))
			break;
		found[count++] = d;
	}
	take_devices(n, found, count);
}

/* ---- asking the driver ---- */

static void probe_done(struct local_probe *pr, bool in_time)
{
	struct local *l = pr->l;

	l->node.probe = NULL;
	loop_cancel(pr->timeout);
	event_free(pr->ev);
	close(pr->fd);
	if (!in_time) {
		kill(pr->pid, SIGKILL);
		snprintf(l->node.note, sizeof(l->node.note), "the NVIDIA driver does not answer");
		for (size_t i = 0; i < l->node.n_devices; i++)
			l->node.devices[i].healthy = false;
		log_warn("local.driver_hangs", "timeout_s=%lld",
			 (long long)(LOCAL_PROBE_US / 1000000));
	} else {
		take_lines(&l->node, (char *)gpuq_buf_str(&pr->text));
	}
	/* Stuck in the driver it may not die now; then it is init's when we end. */
	waitpid(pr->pid, NULL, in_time ? 0 : WNOHANG);
	gpuq_buf_done(&pr->text);
	free(pr);
	local_node_report(l);
	local_list(l);
}

static void on_probe(evutil_socket_t fd, short what, void *arg)
{
	struct local_probe *pr = arg;
	char chunk[4096];
	ssize_t n;

	(void)what;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		gpuq_buf_add(&pr->text, chunk, (size_t)n);
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		probe_done(pr, true);
}

static void on_probe_timeout(void *arg)
{
	struct local_probe *pr = arg;

	pr->timeout = NULL;
	probe_done(pr, false);
}

static bool probe(struct local *l)
{
	const char *argv[] = { l->shepherd, "--shepherd", "--devices", NULL };
	struct local_probe *pr = calloc(1, sizeof(*pr));

	if (!pr)
		return false;
	pr->l = l;
	pr->text.max_bytes = PROBE_BYTES_MAX;
	pr->pid = local_spawn(l, argv, &pr->fd);
	if (pr->pid < 0) {
		log_warn("local.probe_failed", "program=%s why=%s", LOGS(l->shepherd),
			 LOGS(strerror(errno)));
		free(pr);
		return false;
	}
	pr->ev = event_new(loop_base(l->loop), pr->fd, EV_READ | EV_PERSIST, on_probe, pr);
	if (!pr->ev || event_add(pr->ev, NULL) != 0)
		abort(); /* as loop_after */
	pr->timeout = loop_after(l->loop, LOCAL_PROBE_US, on_probe_timeout, pr);
	l->node.probe = pr;
	return true;
}

void local_node_check(struct local *l)
{
	struct local_node *n = &l->node;

	n->check_at_us = loop_mono_us(l->loop) + LOCAL_NODE_CHECK_US;
	n->cpu_milli = cpu_milli();
	n->memory_bytes = memory_bytes();
	if (l->gpus < 0 && (n->probe || probe(l)))
		return; /* reported when the driver has answered */
	local_node_report(l);
	local_list(l);
}

int local_node_init(struct local *l, struct gpuq_err *err)
{
	struct local_node *n = &l->node;

	if (gethostname(n->name, sizeof(n->name) - 1) != 0 || !n->name[0])
		snprintf(n->name, sizeof(n->name), "localhost");
	if (l->gpus <= 0)
		return 0;
	n->devices = calloc((size_t)l->gpus, sizeof(*n->devices));
	if (!n->devices)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for %lld devices",
				 (long long)l->gpus);
	n->n_devices = (size_t)l->gpus;
	for (size_t i = 0; i < n->n_devices; i++) {
		n->devices[i].healthy = true;
		n->devices[i].minor = (int)i;
	}
	return 0;
}

void local_node_free(struct local *l)
{
	struct local_probe *pr = l->node.probe;

	if (pr) {
		loop_cancel(pr->timeout);
		event_free(pr->ev);
		close(pr->fd);
		kill(pr->pid, SIGKILL);
		waitpid(pr->pid, NULL, WNOHANG);
		gpuq_buf_done(&pr->text);
		free(pr);
	}
	free(l->node.devices);
	l->node.devices = NULL;
}
