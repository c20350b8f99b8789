/* journal_rig.h - a model with its journal and store in a folder of its own, without a daemon */
#ifndef TESTS_UNIT_JOURNAL_RIG_H
#define TESTS_UNIT_JOURNAL_RIG_H

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"
#include "tests/unit/model_rig.h"

struct journal_rig {
	char dir[64];
	struct loop *loop;
	struct store *store;
	struct model *model;
	struct journal *journal;
};

/* Takes the model over. The test fails where that cannot be made. */
void journal_rig_open(struct journal_rig *r, struct model *m);
void journal_rig_close(struct journal_rig *r);

#endif
