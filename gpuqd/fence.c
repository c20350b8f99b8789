#include "gpuqd/fence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/schedule.h"

/* A directory is known by its device and number: a copy, or a volume that is mounted on another
 * machine, differs in one of them or in the boot. */
static void put_place(struct fence *f, const char *dir)
{
	struct stat st;
	char boot[40];

	clock_boot_id(boot);
	if (*boot && stat(dir, &st) == 0)
		snprintf(f->place, sizeof(f->place), "%s/%jx:%jx", boot, (uintmax_t)st.st_dev,
			 (uintmax_t)st.st_ino);
}

void fence_init(struct fence *f, const char *dir, const struct store *st)
{
	const struct store_identity id = store_identity(st);
	char host[65] = "";

	memset(f, 0, sizeof(*f));
	snprintf(f->store_id, sizeof(f->store_id), "%s", id.store_id);
	put_place(f, dir);
	gethostname(host, sizeof(host) - 1);
	snprintf(f->words, sizeof(f->words), "gpuqd on %s, pid %ld, state %.128s",
		 *host ? host : "?", (long)getpid(), dir);
}

static void recover(struct fence *f)
{
	struct event ev = { .type = EV_RECOVERY_BEGUN };

	f->other_lived = false;
	log_warn("recover.begun",
		 "reason=another gpuqd acted under this identity: nothing is started or removed "
		 "until the cluster was listed");
	journal_apply(f->j, &ev, NULL);
}

static void on_fenced(void *arg, const struct cluster_fence *c)
{
	struct fence *f = arg;
	const bool was_fenced = model_is_fenced(journal_model(f->j));
	struct event ev = { .type = EV_FENCED };

	ev.fence.by = c->by;
	ev.fence.waits = c->waits;
	journal_apply(f->j, &ev, NULL);
	f->other_lived |= c->lived;
	if (!*c->by && f->other_lived)
		recover(f);
	else if (*c->by && !was_fenced)
		f->lost(f->arg);
	schedule_kick(f->s);
}

void fence_listen(struct fence *f, struct journal *j, struct reconcile *r, struct schedule *s,
		  void (*lost)(void *arg), void *arg)
{
	f->j = j;
	f->s = s;
	f->lost = lost;
	f->arg = arg;
	reconcile_on_fenced(r, on_fenced, f);
}
