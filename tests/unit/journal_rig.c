#include "tests/unit/journal_rig.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpuqd/store/write.h"

void journal_rig_open(struct journal_rig *r, struct model *m)
{
	/* On a busy machine all that a test submits is one transaction, which reuses no pages. */
	const struct store_opts o = { .map_bytes = 128 << 20, .unsafe_fs = true };
	const struct journal_opts jo = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool is_new;

	snprintf(r->dir, sizeof(r->dir), "/tmp/gpuq-unit.XXXXXX");
	cr_assert_not_null(mkdtemp(r->dir));
	cr_assert_eq(loop_new(&r->loop, &err), 0);
	cr_assert_eq(store_open(r->dir, &o, &r->store, &is_new, &err), 0, "%s", err.text);
	r->model = m;
	cr_assert_eq(journal_new(r->loop, r->store, m, &jo, &r->journal, &err), 0, "%s", err.text);
}

void journal_rig_close(struct journal_rig *r)
{
	static const char *const files[] = { "data.mdb", "lock.mdb", "gpuqd.lock", "mark",
					     "ballast" };
	char path[128];

	store_close_writer(r->store);
	journal_free(r->journal);
	store_close(r->store);
	model_free(r->model);
	loop_free(r->loop);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, files[i]);
		unlink(path);
	}
	rmdir(r->dir);
}
