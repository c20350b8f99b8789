#include "config.h"

#include "gpuqd/cluster/local/shepherd/devlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_MAX DEVLIMIT_MINORS
#define LAST_FIXED 255 /* modeset and control are behind the devices */

struct minors {
	int items[OWN_MAX];
	size_t n;
};

static bool parse(const char *text, struct minors *out)
{
	out->n = 0;
	while (*text) {
		char *end;
		const long v = strtol(text, &end, 10);

		if (end == text || (*end && (*end != ',' || !end[1])) || v < 0 ||
		    v >= DEVLIMIT_MINORS || out->n == OWN_MAX)
			return false;
		out->items[out->n++] = (int)v;
		text = *end ? end + 1 : end;
	}
	return true;
}

static bool has(const struct minors *m, int minor)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->items[i] == minor)
			return true;
	return false;
}

static bool put(const char *dir, const char *file, const char *text)
{
	char path[640];
	const size_t n = strlen(text);
	bool ok;
	int fd, why;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, text, n) == (ssize_t)n;
	why = errno;
	close(fd);
	errno = why;
	return ok;
}

static bool fail(char why[200], const char *what)
{
	snprintf(why, 200, "%s: %s", what, strerror(errno));
	return false;
}

/* ---- version 2: a program ---- */

#define LOAD(reg, field)                                                                           \
	{                                                                                          \
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (reg), .src_reg = BPF_REG_1,         \
		.off = offsetof(struct bpf_cgroup_dev_ctx, field)                                  \
	}
#define ALU(op, reg, value)                                                                        \
	{                                                                                          \
		.code = BPF_ALU64 | (op) | BPF_K, .dst_reg = (reg), .imm = (value)                 \
	}
#define JUMP(op, reg, value, by)                                                                   \
	{                                                                                          \
		.code = BPF_JMP | (op) | BPF_K, .dst_reg = (reg), .imm = (value),                  \
		.off = (int16_t)(by)                                                               \
	}
#define EXIT                                                                                       \
	{                                                                                          \
		.code = BPF_JMP | BPF_EXIT                                                         \
	}

static int load_program(const struct minors *own)
{
	/* Answer 1, which allows, but for what comes to the end of the list. */
	const int n = (int)own->n;
	const struct bpf_insn head[] = {
		ALU(BPF_MOV, BPF_REG_0, 1),
		LOAD(BPF_REG_2, access_type),
		ALU(BPF_AND, BPF_REG_2, 0xffff),
		JUMP(BPF_JNE, BPF_REG_2, BPF_DEVCG_DEV_CHAR, n + 5),
		LOAD(BPF_REG_2, major),
		JUMP(BPF_JNE, BPF_REG_2, DEVLIMIT_MAJOR, n + 3),
		LOAD(BPF_REG_2, minor),
		JUMP(BPF_JGE, BPF_REG_2, DEVLIMIT_MINORS, n + 1),
	};
	const struct bpf_insn tail[] = { ALU(BPF_MOV, BPF_REG_0, 0), EXIT };
	enum { HEAD = sizeof(head) / sizeof(head[0]), TAIL = sizeof(tail) / sizeof(tail[0]) };
	struct bpf_insn all[HEAD + OWN_MAX + TAIL];
	union bpf_attr attr;

	memcpy(all, head, sizeof(head));
	for (int i = 0; i < n; i++)
		all[HEAD + i] = (struct bpf_insn)JUMP(BPF_JEQ, BPF_REG_2, own->items[i], n - i);
	memcpy(all + HEAD + n, tail, sizeof(tail));
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uint64_t)(uintptr_t)all;
	attr.insn_cnt = (uint32_t)(HEAD + n + TAIL);
	attr.license = (uint64_t)(uintptr_t) "GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* The group keeps the program for as long as it exists; programs of groups above go on being
 * asked too. */
static bool rule_v2(const char *group, const struct minors *own, char why[200])
{
	const int dir = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int program = dir >= 0 ? load_program(own) : -1;
	union bpf_attr attr;
	bool ok;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)dir;
	attr.attach_bpf_fd = (uint32_t)program;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI;
	ok = program >= 0 && syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr)) == 0;
	if (!ok)
		fail(why, dir < 0       ? "cannot open the control group"
			  : program < 0 ? "the kernel rejects device programs"
					: "the kernel cannot attach device programs");
	if (program >= 0)
		close(program);
	if (dir >= 0)
		close(dir);
	return ok;
}

/* ---- version 1: a list ---- */

static bool change(const char *group, const char *file, int minor)
{
	char line[32];

	if (minor < 0)
		snprintf(line, sizeof(line), "c %d:* rwm", DEVLIMIT_MAJOR);
	else
		snprintf(line, sizeof(line), "c %d:%d rwm", DEVLIMIT_MAJOR, minor);
	return put(group, file, line);
}

/* Is all allowed that is not denied ("a *:* rwm"), or the other way round? */
static bool allows_all(const char *group)
{
	char path[640], line[64];
	bool all = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/devices.list", group);
	f = fopen(path, "re");
	while (f && !all && fgets(line, sizeof(line), f))
		all = strncmp(line, "a *:*", 5) == 0;
	if (f)
		fclose(f);
	return all;
}

static bool rule_v1(const char *group, const struct minors *own, char why[200])
{
	const bool all = allows_all(group);

	/* Where a list says what is allowed, an entry for the whole major stands for each. */
	if (!all && !change(group, "devices.deny", -1))
		return fail(why, "the devices controller denies nothing");
	for (int i = 0; i < DEVLIMIT_MINORS; i++)
		if (!has(own, i) && !change(group, "devices.deny", i))
			return fail(why, "the devices controller denies nothing");
	/* A device that the groups above do not have either is refused, and is not needed. */
	for (int i = 0; !all && i <= LAST_FIXED; i++)
		if (i >= DEVLIMIT_MINORS || has(own, i))
			(void)change(group, "devices.allow", i);
	return true;
}

/* ---- both ---- */

static const struct way {
	const char *root, *sign;
	bool (*rule)(const char *group, const struct minors *own, char why[200]);
} ways[] = {
	{ "/sys/fs/cgroup", "cgroup.controllers", rule_v2 },
	{ "/sys/fs/cgroup/unified", "cgroup.controllers", rule_v2 },
	{ "/sys/fs/cgroup/devices", "devices.deny", rule_v1 },
};

#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

size_t devlimit_n_ways(void)
{
	return N_WAYS;
}

const char *devlimit_way(size_t way)
{
	return ways[way].root;
}

bool devlimit_begin_in(size_t way, struct devlimit *d, const char *uid, const char *minors, int pid,
		       char why[200])
{
	const struct way *w = &ways[way];
	char sign[128], parent[128], member[32];
	struct minors own;
	bool made;

	d->path[0] = '\0';
	snprintf(sign, sizeof(sign), "%s/%s", w->root, w->sign);
	snprintf(parent, sizeof(parent), "%s/gpuq", w->root);
	snprintf(member, sizeof(member), "%d", pid);
	if (!parse(minors, &own)) {
		snprintf(why, 200, "expected at most %d devices from 0 to %d, not %.60s", OWN_MAX,
			 DEVLIMIT_MINORS - 1, minors);
		return false;
	}
	if (access(sign, F_OK) != 0) {
		snprintf(why, 200, "%s is no control group of that kind", w->root);
		return false;
	}
	mkdir(parent, 0755);
	snprintf(d->path, sizeof(d->path), "%s/%s", parent, uid);
	made = mkdir(d->path, 0755) == 0; /* else it is the memory limit's */
	if (!made && errno != EEXIST) {
		d->path[0] = '\0';
		return fail(why, "cannot create a control group");
	}
	if (w->rule(d->path, &own, why) &&
	    (pid == 0 || put(d->path, "cgroup.procs", member) ||
	     fail(why, "cannot put the process into its control group")))
		return true;
	if (made)
		rmdir(d->path);
	d->path[0] = '\0';
	return false;
}

bool devlimit_begin(struct devlimit *d, const char *uid, const char *minors, int pid, char why[200])
{
	d->path[0] = '\0';
	if (geteuid() != 0) {
		snprintf(why, 200, "gpuqd is not root");
		return false;
	}
	snprintf(why, 200, "there are no control groups for devices in /sys/fs/cgroup");
	for (size_t i = 0; i < N_WAYS; i++) {
		char reason[200];

		if (devlimit_begin_in(i, d, uid, minors, pid, reason))
			return true;
		if (!strstr(reason, "is no control group"))
			memcpy(why, reason, sizeof(reason));
	}
	return false;
}

bool devlimit_join(const struct devlimit *d, int pid)
{
	char member[32];

	snprintf(member, sizeof(member), "%d", pid);
	return !d->path[0] || put(d->path, "cgroup.procs", member);
}

void devlimit_end(const char *uid)
{
	char path[512];

	for (size_t i = 0; i < N_WAYS; i++) {
		snprintf(path, sizeof(path), "%s/gpuq/%s", ways[i].root, uid);
		rmdir(path);
	}
}

bool devlimit_check(char why[200])
{
	struct devlimit d;
	char uid[48];
	bool ok;

	snprintf(uid, sizeof(uid), "check-%d", (int)getpid());
	ok = devlimit_begin(&d, uid, "0", 0, why);
	devlimit_end(uid);
	return ok;
}
