/* fence.h - only one daemon of an identity acts
 *
 * Owns     whether another daemon acts, or did, under the identity of this one; the words by which
 *          this one names itself.
 * Touches  the model through the journal; files of the state directory and of /proc.
 * Used by  daemon.c.
 *
 * While another daemon acts, nothing that is stored changes here and the cluster is made again, so
 * that nothing that was requested before is sent later. Where the other was seen at work, this
 * ledger lacks what it did: taking over is then a recovery, as from an older copy.
 */
#ifndef GPUQD_FENCE_H
#define GPUQD_FENCE_H

#include <limits.h>
#include <stdbool.h>

#include "gpuqd/store/store.h"

struct cluster_fence;
struct journal;
struct reconcile;
struct schedule;

struct fence {
	struct journal *j;
	struct schedule *s;
	void (*lost)(void *arg); /* stop asking the cluster, and start it anew: not at once */
	void *arg;
	bool other_lived;
	char store_id[STORE_ID_BYTES], place[96], words[256];
};

/* dir: the state directory, which is locked. */
void fence_init(struct fence *f, const char *dir, const struct store *st);
/* Listen to what r hears of it. */
void fence_listen(struct fence *f, struct journal *j, struct reconcile *r, struct schedule *s,
		  void (*lost)(void *arg), void *arg);

#endif
