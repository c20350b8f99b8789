#include "gpuqd/files.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/code/code_keep.h"
#include "gpuqd/flow/code/code_store.h"
#include "gpuqd/flow/code/codes.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/logs/kept.h"
#include "gpuqd/flow/logs/log_keep.h"
#include "gpuqd/rpc/method/methods.h"

static int open_store(struct files *f, struct journal *j, const char *state,
		      const struct code_store_plan *plan, struct gpuq_err *err)
{
	struct codes_outside outside;
	const int rc = code_store_new(journal_loop(j), plan, state, &f->store, err);

	if (rc < 0)
		return rc;
	code_store_outside(f->store, &outside);
	codes_set_outside(f->codes, &outside);
	code_keep_set_store(f->code_keep, f->store);
	return 0;
}

int files_open(struct files *f, struct journal *j, const char *state, bool local,
	       const struct code_store_plan *store, struct gpuq_err *err)
{
	int rc = codes_open(state, loop_mono_us(journal_loop(j)), &f->codes, err);

	if (rc == 0)
		rc = code_keep_new(j, f->codes, &f->code_keep, err);
	if (rc == 0 && !local && store->to)
		rc = open_store(f, j, state, store, err);
	if (rc == 0 && !local)
		rc = kept_new(journal_loop(j), state, &f->kept, err);
	if (rc == 0 && !local)
		rc = log_keep_new(j, f->kept, &f->log_keep, err);
	return rc;
}

void files_stop(struct files *f)
{
	code_store_stop(f->store);
}

void files_close(struct files *f)
{
	code_keep_free(f->code_keep);
	code_store_free(f->store);
	free(f->store_why);
	codes_close(f->codes);
	log_keep_free(f->log_keep);
	kept_free(f->kept);
}

/* Once for each cause: it is tried again and again. */
static void note_store(struct files *f, const char *why)
{
	if (*why && (!f->store_why || strcmp(f->store_why, why) != 0))
		log_warn("code.no_address", "error=%s", LOGS(why));
	free(f->store_why);
	f->store_why = strdup(why);
}

static int code(void *arg, const char *user, const struct gpuq_spec_code *code,
		struct gpuq_arena *a, struct pod_order *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_volume *volume = NULL;
	struct files *f = arg;
	int rc;

	o->code = codes_path(f->codes, user, code->digest, a);
	if (!o->code)
		return GPUQ_ENOMEM;
	if (!codes_goes_outside(f->codes, code->bytes))
		return 0;
	if (code_store_is_volume(f->store)) {
		rc = code_store_volume(f->store, user, code->digest, a, &volume, &err);
		o->code_volume = volume;
	} else {
		rc = code_store_url(f->store, user, code->digest, a, &o->code_url, &err);
	}
	if (rc == GPUQ_ENOENT) /* of before there was a store: a ConfigMap may take it */
		return 0;
	note_store(f, rc < 0 ? err.text : "");
	if (rc == 0)
		o->code_ca = code_store_ca(f->store);
	return rc;
}

void files_put_opts(struct files *f, struct dispatch_opts *o)
{
	o->code = code;
	o->code_arg = f;
	o->holds = f->log_keep ? log_keep_holds : NULL;
	o->holds_arg = f->log_keep;
}

void files_wire(struct files *f, struct dispatch *d, struct methods *m)
{
	if (f->log_keep)
		log_keep_set_dispatch(f->log_keep, d);
	methods_set_codes(m, f->codes);
	methods_set_kept(m, f->kept);
}

void files_set_cluster(struct files *f, struct cluster *c)
{
	if (f->log_keep)
		log_keep_set_cluster(f->log_keep, c);
}
