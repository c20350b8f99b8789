#include "config.h"

#include "gpuqd/cluster/local/shepherd/proctree.h"
#include "libgpuq/grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct proc {
	int pid, ppid, sid;
	char state;
	uint64_t ticks;
	bool ours, is_srun;
};

static ssize_t slurp(const char *path, char *out, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t k;

	if (fd < 0)
		return -1;
	while (n + 1 < room && (k = read(fd, out + n, room - 1 - n)) > 0)
		n += (size_t)k;
	close(fd);
	out[n] = '\0';
	return (ssize_t)n;
}

static bool look(int pid, struct proc *out)
{
	char path[64], text[1024];
	const char *p;
	int pgrp;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (slurp(path, text, sizeof(text)) <= 0)
		return false;
	/* The name may hold anything, a parenthesis too: fields begin behind the last. */
	p = strrchr(text, ')');
	out->pid = pid;
	out->ours = false;
	out->is_srun = strstr(text, "(srun)") != NULL;
	return p && sscanf(p + 1,
			   " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			   "%*d %*d %" SCNu64,
			   &out->state, &out->ppid, &pgrp, &out->sid, &out->ticks) == 5;
}

uint64_t proctree_ticks(int pid)
{
	struct proc p;

	return look(pid, &p) ? p.ticks : 0;
}

bool proctree_catches(int pid, int signal)
{
	char path[64], text[4096];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (slurp(path, text, sizeof(text)) <= 0)
		return false;
	p = strstr(text, "\nSigCgt:");
	return p && (strtoull(p + 8, NULL, 16) >> (signal - 1)) & 1;
}

static int by_pid(const void *a, const void *b)
{
	const struct proc *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* All processes, by pid; the caller frees. NULL when /proc cannot be read. */
static struct proc *snapshot(size_t *n)
{
	DIR *dir = opendir("/proc");
	struct proc *all = NULL;
	size_t room = 0;
	struct dirent *e;

	*n = 0;
	while (dir && (e = readdir(dir))) {
		int pid = (int)strtol(e->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (!grow_to(&all, &room, *n + 1))
			break;
		if (look(pid, &all[*n]))
			++*n;
	}
	if (dir)
		closedir(dir);
	if (all)
		qsort(all, *n, sizeof(*all), by_pid);
	return all;
}

bool proctree_send(int pid, uint64_t ticks, int signal)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct proc now;
	bool sent;

	if (fd < 0) /* a kernel, or a filter of calls, without: the number has to do */
		return (errno == ENOSYS || errno == EPERM) && kill(pid, signal) == 0;
	/* fd keeps the process number reserved while the process lives, so the process found
	 * under it now is the right one or, if that has ended, one that the signal does not
	 * reach. */
	sent = look(pid, &now) && now.ticks == ticks &&
	       syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
	close(fd);
	return sent;
}

/* Mark what descends from ancestor. Pids may wrap, so a child can stand before its
 * parent: go round until nothing is added. */
static void mark_below(struct proc *all, size_t n, int ancestor)
{
	bool added = true;

	while (added) {
		added = false;
		for (size_t i = 0; i < n; i++) {
			const struct proc key = { .pid = all[i].ppid };
			const struct proc *parent;

			if (all[i].ours)
				continue;
			parent = bsearch(&key, all, n, sizeof(*all), by_pid);
			if (all[i].ppid == ancestor || (parent && parent->ours)) {
				all[i].ours = true;
				added = true;
			}
		}
	}
}

int proctree_signal(int ancestor, int except, int signal)
{
	size_t n;
	struct proc *all = snapshot(&n);
	int found = 0;

	if (!all)
		return 0;
	mark_below(all, n, ancestor);
	for (size_t i = 0; i < n; i++)
		if (all[i].ours && all[i].state != 'Z' && all[i].state != 'X' &&
		    all[i].pid != except && proctree_send(all[i].pid, all[i].ticks, signal))
			found++;
	free(all);
	return found;
}

/* True if it has the same arguments as the shell: a fork of it that has not started a program. */
static bool is_fork(const struct proc *p, const char *arguments, size_t n)
{
	char path[64], text[4096];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", p->pid);
	len = slurp(path, text, sizeof(text));
	return len > 0 && (size_t)len == n && memcmp(text, arguments, n) == 0;
}

static int signal_programs(struct proc *all, size_t n, int shell, int signal)
{
	char path[64], arguments[4096];
	int found = 0;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", shell);
	len = slurp(path, arguments, sizeof(arguments));
	for (size_t i = 0; i < n; i++)
		if (all[i].ours && all[i].state != 'Z' && all[i].state != 'X' &&
		    all[i].pid != shell && !all[i].is_srun &&
		    (len <= 0 || !is_fork(&all[i], arguments, (size_t)len) ||
		     proctree_catches(all[i].pid, signal)) &&
		    proctree_send(all[i].pid, all[i].ticks, signal))
			found++;
	return found;
}

int proctree_signal_programs(int ancestor, int shell, int signal)
{
	size_t n, n_steps = 0;
	struct proc *all = snapshot(&n);
	int found;

	if (!all)
		return 0;
	mark_below(all, n, ancestor);
	for (size_t i = 0; i < n; i++)
		n_steps += all[i].ours && all[i].is_srun;
	if (n_steps) {
		/* Only what is below one of them stays marked. */
		for (size_t i = 0; i < n; i++)
			all[i].ours = all[i].ours && all[i].is_srun;
		mark_below(all, n, -1);
	}
	found = signal_programs(all, n, shell, signal);
	free(all);
	return found;
}

/* Its real user; programs that run with the rights of their file's owner have it too. */
static bool is_of(int pid, uint32_t uid)
{
	char path[64], text[4096];
	uint32_t real;
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (slurp(path, text, sizeof(text)) <= 0)
		return false;
	p = strstr(text, "\nUid:");
	return p && sscanf(p + 5, "%" SCNu32, &real) == 1 && real == uid;
}

static bool has_mark(int pid, const char *mark)
{
	const size_t len = strlen(mark);
	char path[64], *text;
	bool found = false;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	text = malloc(1 << 20);
	n = text ? slurp(path, text, 1 << 20) : 0;
	for (ssize_t at = 0; at < n && !found; at += (ssize_t)strlen(text + at) + 1)
		found = strncmp(text + at, mark, len) == 0 && text[at + (ssize_t)len] == '\0';
	free(text);
	return found;
}

int proctree_kill_stray(int sid, uint64_t ticks, uint32_t uid, const char *mark)
{
	/* A session outlives its leader; its number is not given to a new process while
	 * members are left. Only a leader that started at another time is another session. */
	const uint64_t leader = sid > 0 ? proctree_ticks(sid) : 0;
	const bool same = sid > 0 && (leader == 0 || leader == ticks);
	const int self = getpid();
	size_t n;
	struct proc *all = snapshot(&n);
	int found = 0;

	for (size_t i = 0; i < n; i++) {
		const struct proc *p = &all[i];

		if (p->pid == self || p->state == 'Z' || p->state == 'X' || !is_of(p->pid, uid))
			continue;
		if (((same && p->sid == sid && p->ticks >= ticks) || has_mark(p->pid, mark)) &&
		    proctree_send(p->pid, p->ticks, SIGKILL))
			found++;
	}
	free(all);
	return found;
}
