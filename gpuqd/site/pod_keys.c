#include "gpuqd/site/pod_keys.h"

#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/limits.h"
#include "libgpuq/base/text.h"

/* ---- a site that is read ---- */

/* Return what is wrong with a path that may have marks; NULL = nothing. */
static const char *path_fault(const char *path, bool absolute)
{
	if (absolute ? *path != '/' : !*path || *path == '/')
		return absolute ? "expected a path that begins with '/'"
				: "expected a path below the volume, without '/' in front";
	if (gpuq_path_goes_up(path))
		return "expected a path without '..'";
	for (const char *p = strchr(path, '%'); p; p = strchr(p + 2, '%'))
		if (!p[1] || !strchr("uqg%", p[1]))
			return "expected after % one of u (user), q (queue), g (group of the user) "
			       "and %";
	return NULL;
}

static int check_volume(struct gpuq_reader *r, const struct gpuq_val *v,
			const struct gpuq_volume *vol)
{
	const char *why = path_fault(vol->path, true);

	if (why)
		return gpuq_reader_fail_key(r, v, "path", why);
	why = vol->sub_path ? path_fault(vol->sub_path, false) : NULL;
	return why ? gpuq_reader_fail_key(r, v, "sub_path", why) : 0;
}

static int check_env(struct gpuq_reader *r, const struct gpuq_val *v, const struct gpuq_strmap *env)
{
	const struct gpuq_val *map = gpuq_get(v, "env");
	const char *why;

	for (size_t i = 0; i < env->n && !r->stored; i++) {
		if (!(why = gpuq_env_fault(env->keys[i], env->vals[i])))
			continue;
		gpuq_reader_enter(r, "env");
		return gpuq_reader_fail_key(r, map, env->keys[i], why);
	}
	return 0;
}

int pod_keys_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct site_pod_keys *k)
{
	const struct gpuq_val *list = gpuq_get(v, "volumes");
	const struct gpuq_volume *vols = k->volumes.items;
	const char *why = k->workdir ? path_fault(k->workdir, true) : NULL;
	int rc = 0;

	if (why)
		return gpuq_reader_fail_key(r, v, "workdir", why);
	if (k->volumes.n > GPUQ_VOLUMES_MAX)
		return gpuq_reader_fail_key(r, v, "volumes", "expected at most 256 volumes");
	for (size_t i = 0; rc == 0 && list && i < k->volumes.n && i < list->n; i++) {
		size_t m1, m2;

		m1 = gpuq_reader_enter(r, "volumes");
		m2 = gpuq_reader_enter_item(r, i);
		rc = check_volume(r, list->items[i], &vols[i]);
		for (size_t o = 0; rc == 0 && o < i; o++)
			if (strcmp(vols[o].path, vols[i].path) == 0)
				rc = gpuq_reader_fail_key(r, list->items[i], "path",
							  "another volume is mounted there");
		gpuq_reader_leave(r, m2);
		gpuq_reader_leave(r, m1);
	}
	return rc < 0 ? rc : check_env(r, v, &k->env);
}

const struct gpuq_volume *pod_keys_host(const struct site_pod_keys *k)
{
	const struct gpuq_volume *vols = k->volumes.items;

	for (size_t i = 0; i < k->volumes.n; i++)
		if (vols[i].host_path)
			return &vols[i];
	return NULL;
}

/* ---- two queues ---- */

/* Return the next object with keys, from the queue upwards to the site, which is the last; NULL = there is
 * none. *q is the queue to go on with, *ended is set after the site. */
static const struct site_pod_keys *next_given(const struct site *s, const struct site_queue **q,
					      bool *ended)
{
	while (!*ended) {
		const struct site_pod_keys *k = *q ? &(*q)->pod : &s->pod;

		if (*q)
			*q = site_queue_above(s, *q);
		else
			*ended = true;
		if (k->image || k->workdir || k->env.n || k->volumes.n)
			return k;
	}
	return NULL;
}

static bool same_volumes(const struct gpuq_objects *a, const struct gpuq_objects *b)
{
	const struct gpuq_volume *x = a->items, *y = b->items;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++) {
		const struct gpuq_val *v = gpuq_schema_write(&mem, &gpuq_volume_schema, &x[i]);
		const struct gpuq_val *w = gpuq_schema_write(&mem, &gpuq_volume_schema, &y[i]);

		same = v && w && gpuq_val_equal(v, w);
	}
	gpuq_arena_done(&mem);
	return same;
}

static bool same_env(const struct gpuq_strmap *a, const struct gpuq_strmap *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++)
		same = gpuq_same_text(gpuq_strmap_get(b, a->keys[i]), a->vals[i]);
	return same;
}

/* True if a path has the name of the queue in it. */
static bool has_queue(const struct site_pod_keys *k)
{
	const struct gpuq_volume *vols = k->volumes.items;
	bool has = k->workdir && strstr(k->workdir, "%q");

	for (size_t i = 0; i < k->volumes.n; i++)
		has |= strstr(vols[i].path, "%q") ||
		       (vols[i].sub_path && strstr(vols[i].sub_path, "%q"));
	return has;
}

bool pod_keys_same(const struct site *s, const char *queue, const struct site *other_site,
		   const char *other_queue)
{
	const struct site_queue *q = site_queue_find(s, queue);
	const struct site_queue *other_q = site_queue_find(other_site, other_queue);
	const bool renamed = strcmp(queue, other_queue) != 0;
	const struct site_pod_keys *a, *b;
	bool ended = false, other_ended = false;

	do {
		a = next_given(s, &q, &ended);
		b = next_given(other_site, &other_q, &other_ended);
		if (a && b &&
		    !(gpuq_same_text(a->image, b->image) &&
		      gpuq_same_text(a->workdir, b->workdir) && same_env(&a->env, &b->env) &&
		      same_volumes(&a->volumes, &b->volumes) && !(renamed && has_queue(a))))
			return false;
	} while (a && b);
	return a == b;
}

/* ---- a job ---- */

struct merge {
	const struct site *s;
	const struct pod_keys_for *f;
	struct gpuq_arena *a;
	struct gpuq_err *err;
	int rc;
};

static const char *group_of(const struct merge *m)
{
	const struct site_user *u = site_user_find(m->s, m->f->user);

	return u && u->groups.n ? u->groups.items[0] : "";
}

/* Return the text for a mark, which must be one part of a path. */
static const char *mark_text(struct merge *m, char mark)
{
	const char *what = mark == 'q' ? "queue" : mark == 'g' ? "group" : "user";
	const char *text = mark == 'q' ? m->f->queue : mark == 'g' ? group_of(m) : m->f->user;

	if (mark == '%')
		return "%";
	if (*text && !strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0)
		return text;
	if (mark == 'g' && !*text)
		m->rc = gpuq_fail(m->err, GPUQ_EINVAL,
				  "a volume of this site has %%g in its path, and user %.64s is in "
				  "no group of the site (users: groups)",
				  m->f->user);
	else
		m->rc = gpuq_fail(m->err, GPUQ_EINVAL,
				  "a volume of this site has %%%c in its path, and the %s '%.64s' "
				  "cannot be part of one",
				  mark, what, text);
	return "";
}

/* Return a copy with the marks replaced; NULL for NULL. */
static const char *expand(struct merge *m, const char *path)
{
	struct gpuq_buf out = GPUQ_BUF_INIT;
	const char *copy;

	if (!path)
		return NULL;
	for (const char *p = path; *p; p++) {
		if (*p == '%')
			gpuq_buf_adds(&out, mark_text(m, *++p));
		else
			gpuq_buf_add(&out, p, 1);
	}
	copy = out.failed ? NULL : gpuq_arena_strdup(m->a, gpuq_buf_str(&out));
	if (!copy)
		m->rc = gpuq_no_memory(m->err);
	gpuq_buf_done(&out);
	return copy;
}

/* Add the variables that the group does not have, nor the submitter, whose environment a process of this
 * machine has. */
static void add_env(struct merge *m, const struct site_pod_keys *k, const struct gpuq_spec *spec,
		    struct gpuq_group *g)
{
	struct gpuq_strmap both = { .n = 0 };

	if (!k->env.n)
		return;
	both.keys = gpuq_arena_calloc(m->a, g->env.n + k->env.n, sizeof(*both.keys));
	both.vals = gpuq_arena_calloc(m->a, g->env.n + k->env.n, sizeof(*both.vals));
	if (!both.keys || !both.vals) {
		m->rc = gpuq_no_memory(m->err);
		return;
	}
	for (; both.n < g->env.n; both.n++) {
		both.keys[both.n] = g->env.keys[both.n];
		both.vals[both.n] = g->env.vals[both.n];
	}
	for (size_t i = 0; i < k->env.n; i++)
		if (!gpuq_strmap_get(&g->env, k->env.keys[i]) &&
		    !(m->f->local && gpuq_strmap_get(&spec->context.environ, k->env.keys[i]))) {
			both.keys[both.n] = k->env.keys[i];
			both.vals[both.n++] = k->env.vals[i];
		}
	g->env = both;
}

static bool has_path(const struct gpuq_group *g, const char *path)
{
	for (size_t i = 0; i < g->n_volumes; i++)
		if (strcmp(g->volumes[i].path, path) == 0)
			return true;
	return false;
}

/* Add the volumes at paths where the group mounts nothing. */
static void add_volumes(struct merge *m, const struct site_pod_keys *k, struct gpuq_group *g)
{
	const struct gpuq_volume *from = k->volumes.items;
	struct gpuq_volume *both;

	if (!k->volumes.n)
		return;
	both = gpuq_arena_calloc(m->a, g->n_volumes + k->volumes.n, sizeof(*both));
	if (!both) {
		m->rc = gpuq_no_memory(m->err);
		return;
	}
	if (g->n_volumes)
		memcpy(both, g->volumes, g->n_volumes * sizeof(*both));
	g->volumes = both;
	for (size_t i = 0; i < k->volumes.n && m->rc == 0; i++) {
		const char *path = expand(m, from[i].path);

		if (m->rc < 0 || has_path(g, path))
			continue;
		both[g->n_volumes] = from[i];
		both[g->n_volumes].path = path;
		both[g->n_volumes].given = true;
		both[g->n_volumes].sub_path = expand(m, from[i].sub_path);
		g->n_volumes++;
	}
}

/* Return the keys of each, the strongest first, one after the other; NULL = there are no more. */
static const struct site_pod_keys *next_keys(const struct merge *m, size_t i)
{
	const struct site_queue *q = site_queue_find(m->s, m->f->queue);

	if (i-- == 0) {
		static const struct site_pod_keys none = {
			NULL, NULL, { NULL, NULL, 0 }, { NULL, 0 }
		};

		site_each(site_flavor, m->s->flavors, f)
			if (strcmp(f->name, m->f->flavor) == 0)
				return &f->pod;
		return &none;
	}
	for (; q && i > 0; i--)
		q = site_queue_above(m->s, q);
	return q ? &q->pod : i == 0 ? &m->s->pod : NULL;
}

static const char *join(struct merge *m, const char *from, const char *path)
{
	const char *joined = gpuq_path_join(m->a, from, path);

	if (!joined)
		m->rc = gpuq_no_memory(m->err);
	return joined;
}

const char *pod_keys_in_code(struct gpuq_arena *a, const struct gpuq_spec *spec)
{
	const char *from =
		gpuq_path_join(a, GPUQ_CODE_PATH, spec->code.subdir ? spec->code.subdir : "");
	const char *to = spec->chdir && *spec->chdir != '/' ? spec->chdir : "";

	return from ? gpuq_path_join(a, from, to) : NULL;
}

static const char *in_code(struct merge *m, const struct gpuq_spec *spec)
{
	const char *path = pod_keys_in_code(m->a, spec);

	if (!path)
		m->rc = gpuq_no_memory(m->err);
	return path;
}

/* Return the directory of --chdir as Slurm counts it, from that of submission; NULL = none is known. */
static const char *asked_dir(struct merge *m, const struct gpuq_spec *spec)
{
	const char *from = spec->context.cwd, *to = spec->chdir;

	if (!to || !*to)
		return NULL;
	if (*to == '/')
		return join(m, "/", to);
	return spec->code.digest || !from || *from != '/' ? NULL : join(m, from, to);
}

static void merge_group(struct merge *m, const struct gpuq_spec *spec, struct gpuq_group *g)
{
	const struct site_pod_keys *k;
	const char *workdir = NULL, *image = NULL, *asked;

	for (size_t i = 0; m->rc == 0 && (k = next_keys(m, i)) != NULL; i++) {
		add_env(m, k, spec, g);
		if (m->f->local)
			continue;
		add_volumes(m, k, g);
		if (!workdir && k->workdir)
			workdir = expand(m, k->workdir);
		if (!image)
			image = k->image;
	}
	if (m->f->local)
		return;
	if (!g->image || !*g->image)
		g->image = image;
	if (g->workdir)
		return;
	asked = asked_dir(m, spec);
	if (gpuq_group_below(g, asked))
		g->workdir = asked;
	else if (spec->code.digest)
		g->workdir = in_code(m, spec);
	else if (gpuq_group_below(g, spec->context.cwd))
		g->workdir = spec->context.cwd;
	else
		g->workdir = workdir;
}

int pod_keys_merge(const struct site *s, const struct pod_keys_for *f, const struct gpuq_spec *spec,
		   struct gpuq_arena *a, struct gpuq_spec *out, struct gpuq_err *err)
{
	struct merge m = { .s = s, .f = f, .a = a, .err = err };
	struct gpuq_group *groups = gpuq_arena_calloc(a, spec->n_groups + 1, sizeof(*groups));

	if (!groups)
		return gpuq_no_memory(err);
	memcpy(groups, spec->groups, spec->n_groups * sizeof(*groups));
	for (size_t i = 0; i < spec->n_groups && m.rc == 0; i++)
		if (!groups[i].template_)
			merge_group(&m, spec, &groups[i]);
	if (m.rc < 0)
		return m.rc;
	*out = *spec;
	out->groups = groups;
	return 0;
}
