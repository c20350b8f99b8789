#include "gpuqd/flow/script/script.h"

#include <string.h>

#include "gpuqd/site/pod_keys.h"

/* True if it is a script that says nothing of the directory that it is submitted from, which is not on a volume. */
static bool lacks_directory(const struct script_job *j)
{
	const struct gpuq_spec *s = j->spec;

	return s->script && !s->code.dir && !s->code.none && s->context.cwd &&
	       !gpuq_group_below(&j->whole->groups[0], s->context.cwd);
}

int script_check_code(const struct script_job *j, struct gpuq_err *err)
{
	bool sends = false;

	for (const struct queue *q = j->queue; q; q = q->parent)
		sends |= q->site->code;
	if (!sends || !lacks_directory(j))
		return 0;
	/* The words are for clients that do not know of it. */
	return gpuq_fail_field(err, GPUQ_ENOENT, "code",
			       "code: scripts of queue %s carry the directory that they are "
			       "submitted from: submit with --code DIR, or with --code none",
			       j->queue->name);
}

/* True if the volumes that go with a flavor bring the directory. Which flavor the job gets is not known yet. */
static bool some_flavor_has_it(const struct script_job *j)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool has = false;

	site_each(site_flavor, j->m->site->flavors, f) {
		const struct pod_keys_for with = { j->queue->name, j->user, f->name, false };
		struct gpuq_spec whole;

		if (has || !f->pod.volumes.n ||
		    (j->spec->flavors.n && !gpuq_strlist_has(&j->spec->flavors, f->name)))
			continue;
		has = pod_keys_merge(j->m->site, &with, j->spec, &a, &whole, &err) == 0 &&
		      gpuq_group_below(&whole.groups[0], j->spec->context.cwd);
	}
	gpuq_arena_done(&a);
	return has;
}

/* True if the job says itself where it runs, and that is there. */
static bool says_where(const struct script_job *j)
{
	return j->spec->groups[0].workdir || gpuq_group_below(&j->whole->groups[0], j->spec->chdir);
}

void script_warn_directory(const struct script_job *j, struct gpuq_buf *warnings)
{
	/* A command line of --wrap may well need no file. */
	if (!lacks_directory(j) || says_where(j) || gpuq_spec_is_wrap(j->spec) ||
	    some_flavor_has_it(j))
		return;
	gpuq_buf_printf(
		warnings,
		"the pod will not have %s, the directory of submission: send it with "
		"--code . (code: true), or submit from a directory on a volume; --code none "
		"if the script needs no file of it\n",
		j->spec->context.cwd);
}
