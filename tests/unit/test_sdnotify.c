/* Messages to the service manager. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpuqd/base/sdnotify.h"

static int manager(const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	memcpy(sun.sun_path, name, n);
	if (*name == '@')
		sun.sun_path[0] = '\0';
	cr_assert_eq(bind(fd, (struct sockaddr *)&sun,
			  (socklen_t)(sizeof(sa_family_t) + n + (*name == '/'))),
		     0);
	return fd;
}

static void expect(int fd, const char *want)
{
	char text[600];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	cr_expect(strncmp(text, want, strlen(want)) == 0, "'%s', wanted '%s'", text, want);
}

static void tell_all(const char *name)
{
	int fd = manager(name);

	setenv("NOTIFY_SOCKET", name, 1);
	setenv("WATCHDOG_USEC", "30000000", 1);
	sdnotify_init();
	cr_expect_null(getenv("NOTIFY_SOCKET"), "children must not speak for us");
	cr_expect_null(getenv("WATCHDOG_USEC"));
	cr_expect_eq(sdnotify_watchdog_us(), 30000000);
	cr_expect(sdnotify_ready());
	expect(fd, "READY=1");
	cr_expect(sdnotify_status("%d jobs\nand a line", 3));
	expect(fd, "STATUS=3 jobs and a line");
	cr_expect(sdnotify_watchdog());
	expect(fd, "WATCHDOG=1");
	cr_expect(sdnotify_reloading());
	expect(fd, "RELOADING=1\nMONOTONIC_USEC=");
	cr_expect(sdnotify_stopping());
	expect(fd, "STOPPING=1");
	close(fd);
	cr_expect_not(sdnotify_ready(), "nobody listens at %s", name);
}

Test(sdnotify, by_path)
{
	char dir[] = "/tmp/gpuq-sdnotify.XXXXXX", path[64];

	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	tell_all(path);
	unlink(path);
	rmdir(dir);
}

Test(sdnotify, by_abstract_name)
{
	char name[64];

	snprintf(name, sizeof(name), "@gpuq-sdnotify-%d", (int)getpid());
	tell_all(name);
}

Test(sdnotify, without_a_manager_all_is_well)
{
	unsetenv("NOTIFY_SOCKET");
	setenv("WATCHDOG_USEC", "1000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	sdnotify_init();
	cr_expect_eq(sdnotify_watchdog_us(), 0, "meant for another process");
	cr_expect(sdnotify_ready());
	setenv("NOTIFY_SOCKET", "relative/path", 1);
	sdnotify_init();
	cr_expect(sdnotify_ready());
}
