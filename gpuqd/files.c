#include "gpuqd/files.h"

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/code/code_keep.h"
#include "gpuqd/flow/code/codes.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/logs/kept.h"
#include "gpuqd/flow/logs/log_keep.h"
#include "gpuqd/rpc/method/methods.h"

int files_open(struct files *f, struct journal *j, const char *state, bool local,
	       struct gpuq_err *err)
{
	int rc = codes_open(state, loop_mono_us(journal_loop(j)), &f->codes, err);

	if (rc == 0)
		rc = code_keep_new(j, f->codes, &f->code_keep, err);
	if (rc == 0 && !local)
		rc = kept_new(journal_loop(j), state, &f->kept, err);
	if (rc == 0 && !local)
		rc = log_keep_new(j, f->kept, &f->log_keep, err);
	return rc;
}

void files_close(struct files *f)
{
	code_keep_free(f->code_keep);
	codes_close(f->codes);
	log_keep_free(f->log_keep);
	kept_free(f->kept);
}

static const char *code_path(void *arg, const char *user, const char *digest, struct gpuq_arena *a)
{
	return codes_path(arg, user, digest, a);
}

void files_put_opts(struct files *f, struct dispatch_opts *o)
{
	o->code_path = code_path;
	o->code_arg = f->codes;
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
