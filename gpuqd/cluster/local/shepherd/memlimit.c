#include "config.h"

#include "gpuqd/cluster/local/shepherd/memlimit.h"
#include "gpuqd/cluster/local/shepherd/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where groups can be made, the newer interface first. Groups stand below one of our
 * own at the top: a service's own group may not have children while it has members. */
static const struct flavour {
	const char *root, *limit, *events, *event;
	bool v2;
} flavours[] = {
	{ "/sys/fs/cgroup", "memory.max", "memory.events", "oom_kill ", true },
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control", "oom_kill ",
	  false },
};

#define N_FLAVOURS (sizeof(flavours) / sizeof(flavours[0]))

static bool put(const char *dir, const char *file, const char *text)
{
	char path[640];
	const size_t n = strlen(text);
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, text, n) == (ssize_t)n;
	close(fd);
	return ok;
}

static bool has(const char *dir, const char *file)
{
	char path[640];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return access(path, F_OK) == 0;
}

static bool try_flavour(const struct flavour *f, struct memlimit *m, const char *uid,
			const char *bytes, const char *pid)
{
	char parent[64];

	if (has(f->root, "cgroup.controllers") != f->v2)
		return false;
	snprintf(parent, sizeof(parent), "%s/gpuq", f->root);
	if (mkdir(parent, 0755) == 0 && f->v2 && has(f->root, "cgroup.subtree_control"))
		put(f->root, "cgroup.subtree_control", "+memory");
	if (f->v2)
		put(parent, "cgroup.subtree_control", "+memory");
	snprintf(m->path, sizeof(m->path), "%s/%s", parent, uid);
	mkdir(m->path, 0755);
	if (put(m->path, f->limit, bytes)) {
		/* Swap would turn a limit into a crawl; one process of a job killed alone
		 * leaves the others waiting for it for ever. Both are best effort. */
		put(m->path, "memory.swap.max", "0");
		put(m->path, "memory.oom.group", "1");
		if (put(m->path, "cgroup.procs", pid))
			return true;
	}
	rmdir(m->path);
	m->path[0] = '\0';
	return false;
}

bool memlimit_begin(struct memlimit *m, const char *uid, int64_t bytes, int pid)
{
	char limit[32], member[32];

	m->path[0] = '\0';
	if (bytes <= 0 || geteuid() != 0)
		return false;
	snprintf(limit, sizeof(limit), "%" PRId64, bytes);
	snprintf(member, sizeof(member), "%d", pid);
	for (size_t i = 0; i < N_FLAVOURS; i++)
		if (try_flavour(&flavours[i], m, uid, limit, member))
			return true;
	return false;
}

void memlimit_join(const struct memlimit *m, int pid)
{
	char member[32];

	snprintf(member, sizeof(member), "%d", pid);
	if (m->path[0])
		put(m->path, "cgroup.procs", member);
}

bool memlimit_hit(const struct memlimit *m)
{
	char path[640], text[1024];

	if (!m->path[0])
		return false;
	for (size_t i = 0; i < N_FLAVOURS; i++) {
		const char *at;
		FILE *f;
		size_t n;

		snprintf(path, sizeof(path), "%s/%s", m->path, flavours[i].events);
		f = fopen(path, "re");
		if (!f)
			continue;
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = '\0';
		at = strstr(text, flavours[i].event);
		if (at && strtoll(at + strlen(flavours[i].event), NULL, 10) > 0)
			return true;
	}
	return false;
}

/* Read a file of the group; false: there is none. */
static bool read_file(const struct memlimit *m, const char *file, char *text, size_t room)
{
	char path[640];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", m->path, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, room - 1, f);
	fclose(f);
	text[n] = '\0';
	return n > 0;
}

/* Add up the numbers after each "key"; unchanged where there is none. */
static void sum_of(const char *text, const char *key, int64_t *out)
{
	int64_t sum = 0;
	bool any = false;

	for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
		sum += strtoll(at + strlen(key), NULL, 10);
		any = true;
	}
	if (any)
		*out = sum;
}

void memlimit_used(const struct memlimit *m, struct pod_used *u)
{
	char text[4096];

	if (!m->path[0])
		return;
	if (read_file(m, "memory.peak", text, sizeof(text)) ||
	    read_file(m, "memory.max_usage_in_bytes", text, sizeof(text)))
		u->memory_bytes = strtoll(text, NULL, 10);
	if (read_file(m, "cpu.stat", text, sizeof(text))) {
		sum_of(text, "user_usec ", &u->user_us);
		sum_of(text, "system_usec ", &u->system_us);
	}
	if (read_file(m, "io.stat", text, sizeof(text))) {
		sum_of(text, " rbytes=", &u->read_bytes);
		sum_of(text, " wbytes=", &u->written_bytes);
	}
}

void memlimit_end(const char *uid)
{
	char path[512];

	for (size_t i = 0; i < N_FLAVOURS; i++) {
		snprintf(path, sizeof(path), "%s/gpuq/%s", flavours[i].root, uid);
		rmdir(path);
	}
}
