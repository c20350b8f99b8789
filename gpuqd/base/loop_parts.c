/* Account the turns of the loop to parts of the daemon. Time counts for the part entered last;
 * the rest is "other". A part keeps its row for good: names are few and fixed. */
#include "gpuqd/base/loop_parts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uthash.h>

#define NOBODY "other"
/* A span that is longer by the clock on the wall is examined again by the processor's, which
 * costs a system call: other programs may have had their turn in it. */
#define DOUBT_US 1000

struct part {
	UT_hash_handle hh;
	struct loop_part said;
	int64_t turn_us; /* of this turn */
	struct part *next; /* of those that had some of this turn */
	bool in_turn;
	char name[]; /* without the ".c" of a file */
};

struct parts {
	struct part *all, *turn, *now;
	const char *now_name; /* as it was given */
	int64_t since_us; /* monotonic */
	int64_t cpu_us; /* this thread's processor time when it was examined last */
};

static int64_t cpu_us(void)
{
	return clock_us(CLOCK_THREAD_CPUTIME_ID);
}

static struct part *part_of(struct parts *p, const char *name)
{
	const size_t len = strlen(name),
		     n = len > 2 && !strcmp(name + len - 2, ".c") ? len - 2 : len;
	struct part *x = NULL;

	HASH_FIND(hh, p->all, name, n, x);
	if (x)
		return x;
	x = calloc(1, sizeof(*x) + n + 1);
	if (!x)
		abort(); /* at most once for each name that the program has */
	memcpy(x->name, name, n);
	x->said.name = x->name;
	HASH_ADD_KEYPTR(hh, p->all, x->name, n, x);
	return x;
}

static void charge(struct parts *p)
{
	const int64_t now = loop_clock_us();
	int64_t took = now - p->since_us, cpu;

	p->since_us = now;
	if (took > DOUBT_US) {
		cpu = cpu_us();
		took = cpu - p->cpu_us < took ? cpu - p->cpu_us : took;
		p->cpu_us = cpu;
	}
	p->now->turn_us += took;
	if (p->now->in_turn)
		return;
	p->now->in_turn = true;
	p->now->next = p->turn;
	p->turn = p->now;
}

const char *parts_enter(struct parts *p, const char *name)
{
	const char *before = p->now_name;

	charge(p);
	if (name == before)
		return before;
	p->now_name = name;
	p->now = part_of(p, name);
	return before;
}

const char *parts_turn(struct parts *p, int64_t took_us, int64_t *most_us)
{
	const char *who = NOBODY;

	charge(p);
	*most_us = 0;
	for (struct part *x = p->turn; x; x = x->next) {
		const int64_t us = x->turn_us < took_us ? x->turn_us : took_us;

		x->said.turns++;
		x->said.sum_us += us;
		if (us > x->said.most_us)
			x->said.most_us = us;
		if (us > *most_us) {
			*most_us = us;
			who = x->name;
		}
		x->turn_us = 0;
		x->in_turn = false;
	}
	p->turn = NULL;
	return who;
}

static int longest_first(const void *pa, const void *pb)
{
	const struct loop_part *a = pa, *b = pb;

	if (a->most_us != b->most_us)
		return a->most_us > b->most_us ? -1 : 1;
	return strcmp(a->name, b->name);
}

size_t parts_list(const struct parts *p, struct loop_part *out, size_t room)
{
	size_t n = 0;

	for (const struct part *x = p->all; x && n < room; x = x->hh.next)
		if (x->said.turns)
			out[n++] = x->said;
	qsort(out, n, sizeof(*out), longest_first);
	return n;
}

void parts_reset(struct parts *p)
{
	for (struct part *x = p->all; x; x = x->hh.next)
		x->said = (struct loop_part){ .name = x->name };
}

void parts_begin(struct parts *p)
{
	p->since_us = loop_clock_us();
	p->cpu_us = cpu_us();
}

struct parts *parts_new(void)
{
	struct parts *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->now_name = NOBODY;
	p->now = part_of(p, NOBODY);
	parts_begin(p);
	return p;
}

void parts_free(struct parts *p)
{
	struct part *x, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->all, x, next) {
		HASH_DEL(p->all, x);
		free(x);
	}
	free(p);
}
