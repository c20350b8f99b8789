#include "gpuqd/base/sdnotify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/base/clock.h"

static struct sockaddr_un manager;
static socklen_t manager_len; /* 0 = no watchdog */
static int64_t watchdog_us;

static void find_manager(const char *path)
{
	const size_t n = path ? strlen(path) : 0;

	manager_len = 0;
	if (n < 2 || n >= sizeof(manager.sun_path) || (*path != '/' && *path != '@'))
		return;
	memset(&manager, 0, sizeof(manager));
	manager.sun_family = AF_UNIX;
	memcpy(manager.sun_path, path, n);
	if (*path == '@')
		manager.sun_path[0] = '\0'; /* abstract: the length ends the name, not a NUL */
	manager_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*path == '/'));
}

void sdnotify_init(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	find_manager(getenv("NOTIFY_SOCKET"));
	watchdog_us = 0;
	if (usec && (!pid || strtol(pid, NULL, 10) == (long)getpid()))
		watchdog_us = strtoll(usec, NULL, 10);
	if (watchdog_us < 0)
		watchdog_us = 0;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

int64_t sdnotify_watchdog_us(void)
{
	return watchdog_us;
}

static bool tell(const char *text)
{
	const size_t n = strlen(text);
	ssize_t sent;
	int fd;

	if (manager_len == 0)
		return true;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	sent = sendto(fd, text, n, MSG_NOSIGNAL, (const struct sockaddr *)&manager, manager_len);
	close(fd);
	return sent == (ssize_t)n;
}

bool sdnotify_ready(void)
{
	return tell("READY=1");
}

bool sdnotify_reloading(void)
{
	char text[80];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		 clock_us(CLOCK_MONOTONIC));
	return tell(text);
}

bool sdnotify_stopping(void)
{
	return tell("STOPPING=1");
}

bool sdnotify_watchdog(void)
{
	return tell("WATCHDOG=1");
}

bool sdnotify_status(const char *fmt, ...)
{
	char text[512] = "STATUS=";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + 7, sizeof(text) - 7, fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	return tell(text);
}
