/* ship.h - batches between copies, on their way to the target as segments
 *
 * Owns     the timer of the next segment, the thread that puts it.
 * Touches  the store's log of batches, a target.
 * Used by  rota.c.
 *
 * A thread of its own, because a copy may take minutes and batches must not wait for it.
 */
#ifndef GPUQD_FLOW_COPIES_SHIP_H
#define GPUQD_FLOW_COPIES_SHIP_H

#include "gpuqd/flow/copies/shelf.h"
#include "gpuqd/flow/copies/target.h"

struct journal;
struct ship;

struct ship_opts {
	struct target *target;
	const char *prefix;
	int64_t every_us;
	/* Batches are missing between what the target has and what comes: a copy has to bridge that. */
	void (*gap)(void *arg);
	void *arg;
};

/* Texts and the target are not copied. Nothing is put before ship_listed. */
int ship_new(struct journal *j, const struct ship_opts *o, struct ship **out, struct gpuq_err *err);
bool ship_stop(struct ship *s); /* as rota_stop */
void ship_free(struct ship *s); /* NULL is fine */

/* The target was listed: copies and segments reach so far. Returns whether batches are missing behind
 * that, which are not waiting here either. */
bool ship_listed(struct ship *s, const struct shelf *shelf);

struct ship_state {
	int64_t every_us;
	uint32_t epoch; /* of what the target has */
	uint64_t seq; /* up to this batch, without a gap; 0 = not known */
	int64_t last_us; /* time of the last batch that was put since the start; wall clock, 0 = none */
	bool late; /* a segment has been under way for longer than it may */
	unsigned n_failed;
	int64_t failed_us;
	const char *why;
};
struct ship_state ship_state(const struct ship *s);

#endif
