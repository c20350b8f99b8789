#include "gpuq/tty.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before; /* as they were, while raw */
static volatile sig_atomic_t raw, told, resized;

bool tty_there(void)
{
	return isatty(STDIN_FILENO) == 1;
}

/* Also called from handlers: nothing here but what they may call. */
void tty_restore(void)
{
	if (raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	raw = 0;
}

static void make_raw(void)
{
	struct termios t = before;

	cfmakeraw(&t);
	raw = tcsetattr(STDIN_FILENO, TCSANOW, &t) == 0;
}

/* A signal that ends us, by accident or not: the terminal first. */
static void on_end(int signo)
{
	tty_restore();
	signal(signo, SIG_DFL);
	raise(signo);
}

static void on_stop(int signo)
{
	const int was = raw;

	(void)signo;
	tty_restore();
	raise(SIGSTOP);
	if (was)
		make_raw();
	resized = 1;
}

bool tty_raw(void)
{
	static const int ends[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGPIPE, SIGALRM };
	struct sigaction sa = { .sa_handler = on_end };
	static bool once;

	if (!tty_there() || tcgetattr(STDIN_FILENO, &before) != 0)
		return false;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &sa, NULL);
	sa.sa_handler = on_stop;
	sigaction(SIGTSTP, &sa, NULL);
	if (!once)
		atexit(tty_restore);
	once = true;
	make_raw();
	return raw;
}

bool tty_size(int *cols, int *rows)
{
	struct winsize w;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0)
		return false;
	*cols = w.ws_col;
	*rows = w.ws_row;
	return true;
}

static void on_told(int signo)
{
	told = signo;
}

static void on_resize(int signo)
{
	(void)signo;
	resized = 1;
}

void tty_signals(sigset_t *during)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction sa = { .sa_handler = on_told };
	sigset_t held;

	sigemptyset(&held);
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		sigaction(ends[i], &sa, NULL);
		sigaddset(&held, ends[i]);
	}
	sa.sa_handler = on_resize;
	sigaction(SIGWINCH, &sa, NULL);
	sigaddset(&held, SIGWINCH);
	sigprocmask(SIG_BLOCK, &held, during);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigdelset(during, ends[i]);
	sigdelset(during, SIGWINCH);
}

void tty_signals_done(void)
{
	static const int held[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		sigaddset(&set, held[i]);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int tty_signal_taken(void)
{
	const int signo = told;

	told = 0;
	return signo;
}

bool tty_resized(void)
{
	const bool was = resized;

	resized = 0;
	return was;
}
