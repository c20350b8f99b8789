#include "gpuqd/store/guard.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "gpuqd/store/store.h"

#define MAPS_MAX 8

_Thread_local struct guard guard_here;

static struct map {
	int fd; /* -1 = free */
	volatile uintptr_t from, to;
} maps[MAPS_MAX];
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction was_bus, was_segv;

static void put(char *out, size_t *n, const char *s)
{
	while (*s && *n < 400)
		out[(*n)++] = *s++;
}

/* Only what a signal handler may call. */
_Noreturn void guard_exit(const char *what)
{
	char line[512];
	size_t n = 0;
	ssize_t r;

	put(line, &n, "store.damaged error=\"store: table ");
	put(line, &n, guard_here.table ? guard_here.table : "unknown");
	put(line, &n, " is damaged: ");
	put(line, &n, what);
	put(line, &n, ": keep the files and restore a backup\"\n");
	r = write(STDERR_FILENO, line, n);
	(void)r;
	_exit(STORE_EXIT_DAMAGED);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const uintptr_t at = (uintptr_t)info->si_addr;

	(void)context;
	for (int i = 0; i < MAPS_MAX; i++)
		if (at >= maps[i].from && at < maps[i].to)
			guard_exit(sig == SIGBUS ? "the file is shorter than it should be, or the "
						   "disk cannot be read"
						 : "it leads outside of the file");
	if (guard_here.inside)
		guard_exit("it leads outside of the file");
	/* Not ours: it happens again at once, to the handler that was there. */
	sigaction(sig, sig == SIGBUS ? &was_bus : &was_segv, NULL);
	if (info->si_code <= 0) /* or was sent by a process */
		raise(sig);
}

static void install(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, &was_bus);
	sigaction(SIGSEGV, &sa, &was_segv);
}

/* LMDB does not tell where it maps a file, the kernel does. */
static void find(int fd, uintptr_t *from, uintptr_t *to)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct stat st;
	char line[4400];

	*from = *to = 0;
	if (!f)
		return;
	if (fstat(fd, &st) == 0)
		while (fgets(line, sizeof(line), f)) {
			uintmax_t a, b, inode;
			unsigned dev_major, dev_minor;

			if (sscanf(line, "%jx-%jx %*s %*s %x:%x %ju", &a, &b, &dev_major,
				   &dev_minor, &inode) == 5 &&
			    inode == (uintmax_t)st.st_ino && dev_major == major(st.st_dev) &&
			    dev_minor == minor(st.st_dev)) {
				*from = *from ? *from : (uintptr_t)a;
				*to = (uintptr_t)b;
			}
		}
	fclose(f);
}

void guard_map(int fd)
{
	uintptr_t from, to;

	pthread_once(&once, install);
	find(fd, &from, &to);
	pthread_mutex_lock(&mu);
	for (int i = 0; i < MAPS_MAX; i++)
		if (maps[i].to == 0) {
			maps[i].fd = fd;
			maps[i].from = from;
			maps[i].to = to;
			break;
		}
	pthread_mutex_unlock(&mu);
}

void guard_unmap(int fd)
{
	pthread_mutex_lock(&mu);
	for (int i = 0; i < MAPS_MAX; i++)
		if (maps[i].to && maps[i].fd == fd)
			maps[i].from = maps[i].to = 0;
	pthread_mutex_unlock(&mu);
}
