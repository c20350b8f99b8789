/* gpuq top: jobs, nodes and queues on the whole screen, as they change. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/command.h"
#include "gpuq/list.h"
#include "gpuq/term.h"
#include "gpuq/top/top.h"
#include "libgpuq/units.h"

/* Last: both it and libgpuq/err.h have an ERR. */
#include <curses.h>
#include <term.h>

#define EVERY_US (2 * GPUQ_US_PER_S)
#define LOOK_MS 200 /* at signals and the clock while no key is pressed */

enum { KEY_ESCAPE = 27, KEY_RUBOUT = 127, KEY_CTRL_H = 8, KEY_CTRL_L = 12 };

/* A filter as it is typed; plain characters only, so that none acts on the screen. */
static void type(struct top *t, int key)
{
	const size_t n = strlen(t->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER || key == KEY_ESCAPE) {
		t->typing = false;
		if (key == KEY_ESCAPE)
			t->filter[0] = '\0';
	} else if ((key == KEY_BACKSPACE || key == KEY_RUBOUT || key == KEY_CTRL_H) && n > 0) {
		t->filter[n - 1] = '\0';
	} else if (key >= ' ' && key < KEY_RUBOUT && n + 1 < sizeof(t->filter)) {
		t->filter[n] = (char)key;
		t->filter[n + 1] = '\0';
	}
	t->at = t->first = 0;
}

static size_t less(size_t n, size_t by)
{
	return n > by ? n - by : 0;
}

/* Keys that move; true when it was one. */
static bool go(size_t *at, int key, size_t last)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		*at = less(*at, 1);
		return true;
	case KEY_DOWN:
	case 'j':
		*at += *at < last;
		return true;
	case KEY_PPAGE:
		*at = less(*at, top_page());
		return true;
	case KEY_NPAGE:
	case ' ':
		*at = *at + top_page() < last ? *at + top_page() : last;
		return true;
	case KEY_HOME:
	case 'g':
		*at = 0;
		return true;
	case KEY_END:
	case 'G':
		*at = last;
		return true;
	default:
		return false;
	}
}

static void look_at(struct top *t, size_t n)
{
	const char *id = t->at < n ? t->list.rows[t->at].id : NULL;

	if (!id)
		return;
	snprintf(t->job, sizeof(t->job), "%s", id);
	t->detail = true;
	t->text_at = 0;
	top_read_job(t);
}

/* Other keys of a list. */
static void press(struct top *t, int key, size_t n)
{
	switch (key) {
	case '\t':
		top_set_pane(t, (t->pane + 1) % N_TOP_PANES);
		top_read(t);
		break;
	case KEY_BTAB:
		top_set_pane(t, (t->pane + N_TOP_PANES - 1) % N_TOP_PANES);
		top_read(t);
		break;
	case '1':
	case '2':
	case '3':
		top_set_pane(t, (enum top_pane)(key - '1'));
		top_read(t);
		break;
	case 's':
		t->sort = t->sort + 1 < t->list.n_cols ? t->sort + 1 : 0;
		break;
	case 'S':
		t->down = !t->down;
		break;
	case '/':
		t->typing = true;
		break;
	case KEY_ESCAPE:
		t->filter[0] = '\0';
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		look_at(t, n);
		break;
	case 'r':
		top_read(t);
		break;
	default:
		break;
	}
}

/* False: enough. */
static bool key_pressed(struct top *t, int key, size_t n)
{
	if (key == KEY_RESIZE || key == ERR)
		return true;
	if (key == KEY_CTRL_L) {
		clearok(curscr, TRUE);
		return true;
	}
	if (t->typing) {
		type(t, key);
		return true;
	}
	if (key == 'q')
		return false;
	if (t->detail) {
		if (key == KEY_ESCAPE || key == KEY_LEFT || key == '\n' || key == KEY_BACKSPACE)
			t->detail = false;
		else if (key == 'r')
			top_read_job(t);
		else
			go(&t->text_at, key, SIZE_MAX - top_page() - 1);
		return true;
	}
	if (!go(&t->at, key, n ? n - 1 : 0))
		press(t, key, n);
	return true;
}

static void run(struct top *t, int64_t every_us)
{
	bool goes_on = true;
	size_t n = 0;

	while (goes_on && !cli_signals_seen()) {
		int key;

		if (cli_mono_us() - t->read_us >= every_us) {
			if (t->detail)
				top_read_job(t);
			top_read(t);
		}
		top_arrange(t, &n);
		top_draw(t, n);
		key = getch();
		goes_on = key_pressed(t, key, n);
	}
}

/* In the place of those of curses: all that ends a program ends it the ordinary way. */
static void catch_signals(void)
{
	struct sigaction sa;

	cli_signals_catch();
	sigaction(SIGTERM, NULL, &sa);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGQUIT, &sa, NULL);
}

/* newterm() would say so as well, but leave memory behind. */
static bool terminal_is_known(void)
{
	int why;

	if (setupterm(NULL, STDOUT_FILENO, &why) != OK)
		return false;
	del_curterm(cur_term);
	return true;
}

/* The terminal is restored however it ends: by a key, by a signal, or without a server. */
int cmd_top(struct cli *c)
{
	const int64_t every_us = opt_given(&c->args, OPT_WATCH) ? watch_us(c) : EVERY_US;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct top t = { .c = c, .data = GPUQ_ARENA_INIT(0) };
	SCREEN *screen;
	int64_t started_us;

	if (every_us < 0)
		return EXIT_USAGE;
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return cli_usage(c, "no terminal; use gpuq queue --watch");
	if (cli_connect(c, &err) < 0)
		return cli_fail(&err, false);
	(void)term_utf8(); /* ncurses draws what the locale writes */
	screen = terminal_is_known() ? newterm(NULL, stdout, stdin) : NULL;
	if (!screen)
		return cli_usage(c, "the type of the terminal is unknown (TERM)");
	catch_signals();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	timeout(LOOK_MS);
	started_us = cli_mono_us();
	top_set_pane(&t, TOP_JOBS);
	t.read_us = started_us - every_us;
	run(&t, every_us);
	endwin();
	delscreen(screen);
	top_done(&t);
	return EXIT_DONE;
}
