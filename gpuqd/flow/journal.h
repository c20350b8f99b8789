/* journal.h - events in, records out, and no effect before it is durable
 *
 * Owns     the batch of the current turn, the one that is being written, and the callbacks
 *          that wait for them.
 * Touches  the model (it is the only caller of model_apply in the daemon), the store.
 * Used by  everything in flow/ and rpc/ that changes or reads the model.
 *
 * All changes of one turn of the loop, and of further turns while the writer is busy, are one
 * transaction. Every visible effect (a reply, a pod call, a notification) is passed to
 * journal_after() and runs when everything applied before it is on disk. When a batch finds no
 * space, its callbacks get that error, and the model, which is ahead of the disk, must be loaded
 * again.
 */
#ifndef GPUQD_FLOW_JOURNAL_H
#define GPUQD_FLOW_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

struct loop;
struct store;
struct journal;

/* rc is 0, or the reason why the changes are not stored. */
typedef void (*durable_fn)(void *arg, int rc, const struct gpuq_err *err);

/* Called after each applied event, in the order of registration. The event and what it
 * points at live until the callback returns; a callback may apply further events. */
typedef void (*journal_event_fn)(void *arg, const struct event *ev);

struct journal_opts {
	/* The model is ahead of a batch that found no space: load it again (journal_set_model) and
	 * stay read-only until journal_writable(). Called outside of any callback of the store. */
	void (*no_space)(void *arg);
	/* The state of the disk is unknown: end the process (exit 74). */
	void (*broken)(void *arg, const struct gpuq_err *err);
	void *arg;
};

int journal_new(struct loop *l, struct store *st, struct model *m, const struct journal_opts *o,
		struct journal **out, struct gpuq_err *err);
/* Free it; waiting callbacks get GPUQ_EGONE. */
void journal_free(struct journal *j);

/* For reading: changes go through journal_apply(). */
const struct model *journal_model(const struct journal *j);
struct loop *journal_loop(const struct journal *j);
struct store *journal_store(const struct journal *j);
void journal_set_model(struct journal *j, struct model *m);
void journal_set_policy(struct journal *j, const struct policy *p); /* model_set_policy() */

/* Apply one event at the turn's time (ev->at_us 0 = now). Returns the result of model_apply;
 * GPUQ_ESTORAGE while there is no space, GPUQ_EBUSY while another daemon acts under this identity
 * (events that are never stored pass). */
int journal_apply(struct journal *j, struct event *ev, struct gpuq_err *err);

void journal_subscribe(struct journal *j, journal_event_fn fn, void *arg);

/* Run fn once everything applied so far is durable: at the end of this turn when nothing is to be
 * written, else when its batch is. */
void journal_after(struct journal *j, durable_fn fn, void *arg);

/* Return the number of the batch that changes applied now will be in, and of the last durable one:
 * an object changed at journal_seq() may be acted on when journal_durable() has reached it. */
uint64_t journal_seq(const struct journal *j);
uint64_t journal_durable(const struct journal *j);
void journal_on_durable(struct journal *j, void (*fn)(void *arg), void *arg);

/* Batches since the start. */
struct journal_stats {
	uint64_t n_batches, n_records; /* durable ones */
	uint64_t last_records, most_records; /* of one */
	int64_t last_us, most_us, sum_us; /* from being handed to the writer to being durable */
	unsigned n_waiting; /* callbacks that wait for a batch */
};
void journal_stats(const struct journal *j, struct journal_stats *out);

bool journal_read_only(const struct journal *j);
/* Check that a new job or description can be stored. Returns 0; GPUQ_ESTORAGE: ends and
 * cancellations can still be stored, unless it is read-only as well; GPUQ_EBUSY while fenced. */
int journal_has_space(const struct journal *j, struct gpuq_err *err);
void journal_writable(struct journal *j);
/* Write the rest, wait for it, and run the callbacks that wait for it: at the end of the daemon,
 * when the writer is closed. */
int journal_flush(struct journal *j, struct gpuq_err *err);

#endif
