/* Which devices a group of processes opens, by each of the ways in which a kernel may say so. */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuqd/cluster/local/shepherd/devlimit.h"

static char scratch[64], uid[64];

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(scratch, sizeof(scratch), "%.30s/gpuq-dev-XXXXXX", tmp ? tmp : "/tmp");
	cr_assert(mkdtemp(scratch));
	snprintf(uid, sizeof(uid), "test-%d", (int)getpid());
}

static const char *node(const char *kind, int minor)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/%s%d", scratch, kind, minor);
	return path;
}

static void teardown(void)
{
	for (int minor = 0; minor < 256; minor++) {
		unlink(node("nvidia", minor));
		unlink(node("other", minor));
	}
	rmdir(scratch);
}

TestSuite(local_devices, .init = setup, .fini = teardown, .timeout = 120);

/* 0 opened, or would be with a driver; 1 denied; 2 something else. */
static int opens(const char *path)
{
	const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno == ENXIO || errno == ENODEV || errno == EIO)
		return 0;
	return errno == EPERM ? 1 : 2;
}

static bool makes_devices(void)
{
	return geteuid() == 0 && mknod(node("nvidia", 0), S_IFCHR | 0600, makedev(195, 0)) == 0 &&
	       opens(node("nvidia", 0)) == 0;
}

static const struct {
	const char *kind;
	unsigned major;
	int minor;
	bool open; /* by a group whose own are 3 and 253 */
} rows[] = {
	{ "nvidia", 195, 0, false },  { "nvidia", 195, 2, false },   { "nvidia", 195, 3, true },
	{ "nvidia", 195, 4, false },  { "nvidia", 195, 252, false }, { "nvidia", 195, 253, true },
	{ "nvidia", 195, 254, true }, { "nvidia", 195, 255, true },  { "other", 1, 3, true },
	{ "other", 1, 5, true },
};

/* As a member of the group: the number of rows that are not as they should be. */
static int look(int go_fd)
{
	int wrong = 0;
	char go;

	if (read(go_fd, &go, 1) != 1)
		return 99;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		wrong += opens(node(rows[i].kind, rows[i].minor)) != (rows[i].open ? 0 : 1);
	return wrong;
}

static void try(size_t way)
{
	struct devlimit d;
	int go[2], status;
	char why[200];
	pid_t pid;

	cr_assert_eq(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		_exit(look(go[0]));
	}
	if (!devlimit_begin_in(way, &d, uid, "3,253", pid, why)) {
		printf("%s: %s\n", devlimit_way(way), why);
		cr_expect_str_eq(d.path, "");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	} else {
		cr_expect_eq(write(go[1], "g", 1), 1);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d rows",
			  devlimit_way(way), WEXITSTATUS(status));
		devlimit_end(uid);
		cr_expect_neq(access(d.path, F_OK), 0, "%s is left", d.path);
		printf("%s: works\n", devlimit_way(way));
	}
	close(go[0]);
	close(go[1]);
}

Test(local_devices, a_group_opens_its_own_by_every_way_there_is)
{
	if (!makes_devices())
		cr_skip_test("devices cannot be made, or not opened, here");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert(mknod(node(rows[i].kind, rows[i].minor), S_IFCHR | 0600,
				makedev(rows[i].major, (unsigned)rows[i].minor)) == 0 ||
			  errno == EEXIST);
	for (size_t way = 0; way < devlimit_n_ways(); way++)
		try(way);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(opens(node(rows[i].kind, rows[i].minor)), 0, "we are in no group");
}

Test(local_devices, what_is_no_list_of_minors_is_refused)
{
	static const char *const bad[] = { "a",   "1,",           "1 2", "-1",
					   "254", "999999999999", ",1",  "1,,2" };
	struct devlimit d;
	char why[200] = "";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_not(devlimit_begin_in(0, &d, uid, bad[i], 0, why), "%s", bad[i]);
		cr_expect_not_null(strstr(why, "expected at most"), "%s: %s", bad[i], why);
		cr_expect_str_eq(d.path, "");
	}
}

Test(local_devices, without_root_it_is_said)
{
	struct devlimit d;
	char why[200] = "";

	if (geteuid() == 0 && seteuid(65534) != 0)
		cr_skip_test("this user cannot become another");
	cr_expect_not(devlimit_begin(&d, uid, "0", 0, why));
	cr_expect_str_eq(why, "gpuqd is not root");
	cr_expect_not(devlimit_check(why));
	if (getuid() == 0)
		cr_expect_eq(seteuid(0), 0);
}
