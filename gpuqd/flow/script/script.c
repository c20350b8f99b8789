#include "gpuqd/flow/script/script.h"

#include <string.h>

#include "gpuqd/site/pod_keys.h"
#include "gpuqd/site/site_find.h"

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

/* ---- several pods ---- */

/* True for a script that is one of Slurm's, of several pods, and says nothing of where it runs. */
static bool is_open(const struct script_job *j)
{
	const struct gpuq_spec *s = j->spec;

	return s->script && s->slurm_env && !s->launch.yes && !s->launch.no &&
	       gpuq_spec_pods(s) > 1;
}

bool script_launches(const struct script_job *j)
{
	return is_open(j) && site_launches(j->m->site, j->queue->site);
}

static bool is_word_byte(char c)
{
	return c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') ||
	       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* True if a line that is no comment has the word. In a path it is the last part. */
static bool calls(const char *line, size_t n, const char *word)
{
	const size_t len = strlen(word);

	while (n && (*line == ' ' || *line == '\t')) {
		line++;
		n--;
	}
	if (n && *line == '#')
		return false;
	for (size_t i = 0; i + len <= n; i++)
		if (memcmp(line + i, word, len) == 0 && (i == 0 || !is_word_byte(line[i - 1])) &&
		    (i + len == n || !is_word_byte(line[i + len])))
			return true;
	return false;
}

/* Return the program of these that the script calls first; NULL = none. */
static const char *starter(const struct gpuq_spec *s)
{
	static const char *const words[] = { "srun", "mpirun", "mpiexec" };
	const char *p = s->script, *const end = s->script + s->script_bytes;

	while (p < end) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		const size_t n = (size_t)((stop ? stop : end) - p);

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (calls(p, n, words[i]))
				return words[i];
		p += n + 1;
	}
	return NULL;
}

void script_warn_pods(const struct script_job *j, struct gpuq_buf *warnings)
{
	const char *by = is_open(j) ? starter(j->spec) : NULL;

	if (by)
		gpuq_buf_printf(warnings,
				"each of the %lld pods runs the whole script, which calls %s: with "
				"--launch (launch: true) the first alone runs it, as in Slurm; "
				"--no-launch if it is meant\n",
				(long long)gpuq_spec_pods(j->spec), by);
}
