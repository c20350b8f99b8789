/* Any spec that can be made is written in a form that reads back as the same spec,
 * through the tree, through YAML text and through MessagePack. The seed of a failure
 * is printed; GPUQ_SEED repeats it. */
#include "tests/unit/spec_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libgpuq/names.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

/* ---- dice ---- */

struct dice {
	uint64_t state;
	struct gpuq_arena *a;
};

static uint64_t roll(struct dice *d, uint64_t n)
{
	d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (d->state >> 33) % n;
}

static bool maybe(struct dice *d)
{
	return roll(d, 3) == 0;
}

static const char *name(struct dice *d)
{
	static const char *const names[] = { "a",   "queue-1", "on",    "true", "12",
					     "1e3", "Null",    "x.y_z", "0x10" };

	return names[roll(d, sizeof(names) / sizeof(names[0]))];
}

static const char *text(struct dice *d)
{
	static const char *const texts[] = { "plain",
					     "two words",
					     " lead",
					     "trail ",
					     "a: b",
					     "#no",
					     "'q'",
					     "\"q\"",
					     "tab\there",
					     "line\nline\n",
					     "\n",
					     "- x",
					     "\xc3\xa9t\xc3\xa9",
					     "~",
					     "yes",
					     "{a}",
					     "null",
					     "1.5",
					     "%s",
					     "\x01" };

	return texts[roll(d, sizeof(texts) / sizeof(texts[0]))];
}

/* As a path or a program may be. */
static const char *line(struct dice *d)
{
	const char *t;

	do
		t = text(d);
	while (spec_line_ok(t, NULL) < 0);
	return t;
}

static struct gpuq_strlist list(struct dice *d, const char *(*item)(struct dice *), size_t most)
{
	struct gpuq_strlist l = { .n = roll(d, most + 1) };

	l.items = gpuq_arena_calloc(d->a, l.n, sizeof(*l.items));
	for (size_t i = 0; i < l.n; i++)
		l.items[i] = item(d);
	return l;
}

static struct gpuq_strmap map(struct dice *d, const char *prefix,
			      const char *(*item)(struct dice *))
{
	struct gpuq_strmap m = { .n = roll(d, 4) };

	m.keys = gpuq_arena_calloc(d->a, m.n, sizeof(*m.keys));
	m.vals = gpuq_arena_calloc(d->a, m.n, sizeof(*m.vals));
	for (size_t i = 0; i < m.n; i++) {
		m.keys[i] = gpuq_arena_printf(d->a, "%s%zu", prefix, i);
		m.vals[i] = item(d);
	}
	return m;
}

static int64_t us(struct dice *d)
{
	return (int64_t)(1 + roll(d, 1000000)) * (roll(d, 2) ? GPUQ_US_PER_S : 60 * GPUQ_US_PER_S);
}

/* ---- a spec ---- */

static struct gpuq_term *terms(struct dice *d, size_t *n, bool weigh)
{
	struct gpuq_term *t;

	*n = roll(d, 3);
	t = gpuq_arena_calloc(d->a, *n, sizeof(*t));
	for (size_t i = 0; i < *n; i++) {
		t[i].n = 1 + roll(d, 3);
		t[i].weight = weigh ? 1 + (int64_t)roll(d, 100) : 0;
		t[i].all = gpuq_arena_calloc(d->a, t[i].n, sizeof(*t[i].all));
		for (size_t k = 0; k < t[i].n; k++) {
			struct gpuq_require *q = &t[i].all[k];

			q->key = roll(d, 8) ? name(d) : "metadata.name";
			q->op = (int)roll(d, 6);
			if (q->op == GPUQ_OP_GT || q->op == GPUQ_OP_LT) {
				static const char *const five[] = { "5" };

				q->values = (struct gpuq_strlist){ (const char **)five, 1 };
			} else if (q->op == GPUQ_OP_IN || q->op == GPUQ_OP_NOT_IN) {
				do
					q->values = list(d, name, 3);
				while (q->values.n == 0);
			}
		}
	}
	return t;
}

static void make_group(struct dice *d, struct gpuq_group *g, const char *group_name, bool script)
{
	static const char *const sources[] = { "src" };

	g->name = group_name;
	g->pods_min = 1 + (int64_t)roll(d, 20);
	g->pods_max = g->pods_min + (maybe(d) ? (int64_t)roll(d, 20) : 0);
	switch (roll(d, 4)) {
	case 0:
		break;
	case 1:
		g->gpus_milli = 1000 * (1 + (int64_t)roll(d, 1024));
		if (maybe(d))
			g->mig = "1g.10gb";
		break;
	case 2:
		g->gpus_milli = 10 * (1 + (int64_t)roll(d, 99));
		break;
	case 3:
		g->gpus_milli = 1000;
		g->gpu_memory_bytes = (INT64_C(1) << 20) + (int64_t)roll(d, UINT32_MAX);
		g->gpu_cores = (int64_t)roll(d, 101);
		if (g->gpu_cores > 0 && g->gpu_cores < 100 && maybe(d))
			g->gpu_cores_limit = g->gpu_cores + 1;
		break;
	}
	g->cpu_milli = (int64_t)roll(d, 3) * (int64_t)roll(d, 100000);
	g->memory_bytes = (int64_t)roll(d, 3) * (int64_t)roll(d, UINT32_MAX);
	if (maybe(d))
		g->image = "registry.example/a:1";
	if (!script) {
		do
			g->command = list(d, text, 4);
		while (g->command.n == 0 || spec_line_ok(g->command.items[0], NULL) < 0);
		g->args = list(d, text, 3);
	}
	g->env = map(d, "VAR_", text);
	g->n_volumes = roll(d, 3);
	g->volumes = gpuq_arena_calloc(d->a, g->n_volumes, sizeof(*g->volumes));
	for (size_t i = 0; i < g->n_volumes; i++) {
		struct gpuq_volume *v = &g->volumes[i];
		const char **which[] = { &v->claim, &v->config_map, &v->secret, &v->host_path };
		const size_t k = roll(d, 5);

		if (k < 4)
			*which[k] = sources[0];
		else
			v->memory_bytes = 1 + (int64_t)roll(d, UINT32_MAX);
		v->path = i ? "/some where/else" : "/some where";
		v->read_only = maybe(d);
	}
	if (maybe(d))
		g->workdir = "/w";
	g->required = terms(d, &g->n_required, false);
	g->preferred = terms(d, &g->n_preferred, true);
	g->n_tolerations = roll(d, 3);
	g->tolerations = gpuq_arena_calloc(d->a, g->n_tolerations, sizeof(*g->tolerations));
	for (size_t i = 0; i < g->n_tolerations; i++) {
		struct gpuq_toleration *t = &g->tolerations[i];

		t->exists = maybe(d);
		t->key = t->exists && maybe(d) ? "" : name(d);
		t->value = t->exists ? "" : maybe(d) ? "" : name(d);
		t->effect = maybe(d) ? "NoExecute" : "";
		t->seconds = maybe(d) ? (int64_t)roll(d, 1000) : -1;
	}
	g->nodes = list(d, name, 3);
	if (maybe(d))
		g->topology_required = name(d);
	if (maybe(d))
		g->topology_preferred = name(d);
	g->n_slices = roll(d, 3);
	g->slices = gpuq_arena_calloc(d->a, g->n_slices, sizeof(*g->slices));
	for (size_t i = 0; i < g->n_slices; i++)
		g->slices[i] = (struct gpuq_slice){ name(d), 1 };
}

static void make_array(struct dice *d, struct gpuq_array *out)
{
	char set[64];

	snprintf(set, sizeof(set), "%d,%d-%d:%d%%%d", (int)roll(d, 1000), (int)roll(d, 50),
		 50 + (int)roll(d, 1000), 1 + (int)roll(d, 9), 1 + (int)roll(d, 99));
	cr_assert_eq(gpuq_array_parse(d->a, set, out, NULL), 0, "%s", set);
}

static void make_depends(struct dice *d, struct gpuq_spec *s)
{
	s->n_depends = roll(d, 4);
	s->depends = gpuq_arena_calloc(d->a, s->n_depends, sizeof(*s->depends));
	s->depends_any = s->n_depends > 1 && maybe(d);
	for (size_t i = 0; i < s->n_depends; i++) {
		struct gpuq_depend *p = &s->depends[i];

		do
			p->type = (int)roll(d, 6);
		while (p->type == GPUQ_DEP_AFTERCORR && s->array.n_ranges == 0);
		p->array_index = -1;
		if (p->type == GPUQ_DEP_SINGLETON)
			continue;
		p->job = 1 + (int64_t)roll(d, 100000);
		if (maybe(d))
			p->array_index = (int64_t)roll(d, 1000);
		if (p->type == GPUQ_DEP_AFTER && maybe(d))
			p->delay_us = (int64_t)roll(d, 500) * 60 * GPUQ_US_PER_S;
	}
}

static void make_spec(struct dice *d, struct gpuq_spec *s)
{
	static const char *const group_names[] = { "main", "worker", "launcher", "a.b" };
	const bool script = maybe(d);

	*s = (struct gpuq_spec){ .name = name(d), .requeue = !maybe(d), .context.umask = -1 };
	const char **const names[] = { &s->queue, &s->account, &s->qos, &s->reservation,
				       &s->namespace_ };
	const char **const texts[] = { &s->comment, &s->mail_user };
	const char **const lines[] = { &s->chdir, &s->output, &s->error, &s->input };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (maybe(d))
			*names[i] = name(d);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (maybe(d))
			*texts[i] = text(d);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (maybe(d))
			*lines[i] = line(d);
	s->time_us = maybe(d) ? us(d) : maybe(d) ? GPUQ_UNLIMITED : 0;
	s->begin_us = maybe(d) ? NOW_US + us(d) : 0;
	s->deadline_us = maybe(d) ? NOW_US * 2 + us(d) : 0;
	s->time_min_us = maybe(d) ? ((int64_t)roll(d, 100000) + 1) * GPUQ_US_PER_S : 0;
	s->priority = maybe(d) ? (int64_t)roll(d, 100000) + 1 : 0;
	s->nice = maybe(d) ? (int64_t)roll(d, 2000001) - 1000000 : 0;
	s->hold = maybe(d);
	s->exclusive = maybe(d);
	s->isolation = maybe(d) ? (int)roll(d, N_GPUQ_ISOLATIONS) : 0;
	s->append = maybe(d);
	s->kill_on_invalid_dep = maybe(d);
	s->flavors = list(d, name, 3);
	s->licenses = map(d, "lic", name);
	for (size_t i = 0; i < s->licenses.n; i++)
		s->licenses.vals[i] = gpuq_arena_printf(d->a, "%d", 1 + (int)roll(d, 1000));
	if (maybe(d))
		make_array(d, &s->array);
	make_depends(d, s);
	if (maybe(d)) {
		s->retry.limit = (int64_t)roll(d, GPUQ_RETRY_MAX + 1);
		s->retry.on = (unsigned)roll(d, 16);
		s->retry.exits = gpuq_arena_alloc(d->a, 2);
		s->retry.exits[0] = 3;
		s->retry.exits[1] = 75;
		s->retry.n_exits = roll(d, 3);
		if (s->retry.on == 0 && s->retry.n_exits == 0)
			s->retry.limit = 0; /* retried after what? */
	}
	s->checkpoint.signal = maybe(d) ? 1 + (int)roll(d, 31) : 0;
	s->checkpoint.grace_us = maybe(d) ? us(d) : 0;
	s->checkpoint.interval_us = maybe(d) ? us(d) : 0;
	s->grace_us = maybe(d) ? us(d) : 0;
	if (maybe(d)) {
		s->signal = 1 + (int)roll(d, 31);
		s->signal_lead_us = (int64_t)roll(d, 65536) * GPUQ_US_PER_S;
		s->signal_batch_only = maybe(d);
	}
	s->ntasks = maybe(d) ? (int64_t)roll(d, 1000) : 0;
	s->ntasks_per_node = maybe(d) ? (int64_t)roll(d, 1000) : 0;
	s->cpus_per_task = maybe(d) ? (int64_t)roll(d, 1000) : 0;
	s->memory_per = maybe(d) ? maybe(d) ? "cpu" : "gpu" : NULL;
	if (script) {
		s->script = gpuq_arena_printf(d->a, "#!/bin/sh\n%s", text(d));
		s->script_bytes = strlen(s->script);
		s->script_args = list(d, text, 3);
	}
	s->labels = map(d, "l/k", name);
	s->annotations = map(d, "k", text);
	s->mail_type = list(d, name, 2);
	if (maybe(d))
		s->notify = (struct gpuq_notify){ roll(d, 1u << N_GPUQ_NOTIFY_BITS),
						  maybe(d) ? "ann@example.org" : NULL,
						  maybe(d) ? "https://h/x" : NULL };
	if (maybe(d)) {
		s->context.cwd = "/some/where";
		s->context.umask = 022;
		s->context.environ = map(d, "E", text);
	}
	s->n_groups = 1 + roll(d, 4);
	s->groups = gpuq_arena_calloc(d->a, s->n_groups, sizeof(*s->groups));
	for (size_t i = 0; i < s->n_groups; i++)
		make_group(d, &s->groups[i], group_names[i], script);
	if (s->n_groups == 1 && maybe(d))
		s->groups[0].name = "solo";
}

/* ---- equality: every field of the structs, by hand, so that one that is neither
 * written nor read is seen ---- */

#define SAME(member) cr_assert_eq(x->member, y->member, #member " (seed %llu)", seed)
#define SAME_STR(member)                                                                           \
	cr_assert(same_str(x->member, y->member), #member ": '%s' became '%s' (seed %llu)",        \
		  x->member ? x->member : "NULL", y->member ? y->member : "NULL", seed)
#define SAME_LIST(member) cr_assert(same_list(&x->member, &y->member), #member " (seed %llu)", seed)
#define SAME_MAP(member) cr_assert(same_map(&x->member, &y->member), #member " (seed %llu)", seed)

static bool same_str(const char *x, const char *y)
{
	return x == y || (x && y && strcmp(x, y) == 0);
}

static bool same_list(const struct gpuq_strlist *x, const struct gpuq_strlist *y)
{
	bool same = x->n == y->n;

	for (size_t i = 0; same && i < x->n; i++)
		same = same_str(x->items[i], y->items[i]);
	return same;
}

static bool same_map(const struct gpuq_strmap *x, const struct gpuq_strmap *y)
{
	bool same = x->n == y->n;

	for (size_t i = 0; same && i < x->n; i++)
		same = same_str(x->keys[i], y->keys[i]) && same_str(x->vals[i], y->vals[i]);
	return same;
}

static bool same_terms(const struct gpuq_term *x, const struct gpuq_term *y, size_t n)
{
	bool same = true;

	for (size_t i = 0; same && i < n; i++) {
		same = x[i].n == y[i].n && x[i].weight == y[i].weight;
		for (size_t k = 0; same && k < x[i].n; k++)
			same = same_str(x[i].all[k].key, y[i].all[k].key) &&
			       x[i].all[k].op == y[i].all[k].op &&
			       same_list(&x[i].all[k].values, &y[i].all[k].values);
	}
	return same;
}

static void check_group(const struct gpuq_group *x, const struct gpuq_group *y,
			unsigned long long seed)
{
	SAME_STR(name);
	SAME(pods_min);
	SAME(pods_max);
	SAME(gpus_milli);
	SAME(gpu_memory_bytes);
	SAME(gpu_cores);
	SAME(gpu_cores_limit);
	SAME_STR(mig);
	SAME(cpu_milli);
	SAME(memory_bytes);
	SAME_STR(image);
	SAME_LIST(command);
	SAME_LIST(args);
	SAME_MAP(env);
	SAME(n_volumes);
	for (size_t i = 0; i < x->n_volumes; i++) {
		SAME_STR(volumes[i].claim);
		SAME_STR(volumes[i].config_map);
		SAME_STR(volumes[i].secret);
		SAME_STR(volumes[i].host_path);
		SAME_STR(volumes[i].path);
		SAME(volumes[i].read_only);
		SAME(volumes[i].memory_bytes);
	}
	SAME_STR(workdir);
	SAME(n_required);
	cr_assert(same_terms(x->required, y->required, x->n_required), "required (seed %llu)",
		  seed);
	SAME(n_preferred);
	cr_assert(same_terms(x->preferred, y->preferred, x->n_preferred), "preferred (seed %llu)",
		  seed);
	SAME(n_tolerations);
	for (size_t i = 0; i < x->n_tolerations; i++) {
		SAME_STR(tolerations[i].key);
		SAME(tolerations[i].exists);
		SAME_STR(tolerations[i].value);
		SAME_STR(tolerations[i].effect);
		SAME(tolerations[i].seconds);
	}
	SAME_LIST(nodes);
	SAME_LIST(exclude);
	SAME_STR(topology_required);
	SAME_STR(topology_preferred);
	SAME(n_slices);
	for (size_t i = 0; i < x->n_slices; i++) {
		SAME_STR(slices[i].level);
		SAME(slices[i].size);
	}
	cr_assert(!x->template_ == !y->template_);
	if (x->template_)
		cr_assert(gpuq_val_equal(x->template_, y->template_));
}

static void check_spec(const struct gpuq_spec *x, const struct gpuq_spec *y,
		       unsigned long long seed)
{
	SAME_STR(name);
	SAME_STR(queue);
	SAME_STR(account);
	SAME_STR(qos);
	SAME_STR(comment);
	SAME_STR(reservation);
	SAME_STR(namespace_);
	SAME(time_us);
	SAME(begin_us);
	SAME(deadline_us);
	SAME(nice);
	SAME(hold);
	SAME(requeue);
	SAME_LIST(flavors);
	SAME_MAP(licenses);
	SAME(array.n_ranges);
	for (size_t i = 0; i < x->array.n_ranges; i++) {
		SAME(array.ranges[i].first);
		SAME(array.ranges[i].last);
		SAME(array.ranges[i].step);
	}
	SAME(array.size);
	SAME(array.throttle);
	SAME(retry.limit);
	SAME(retry.on);
	SAME(retry.n_exits);
	for (size_t i = 0; i < x->retry.n_exits; i++)
		SAME(retry.exits[i]);
	SAME(checkpoint.signal);
	SAME(checkpoint.grace_us);
	SAME(checkpoint.interval_us);
	SAME(grace_us);
	SAME(n_depends);
	for (size_t i = 0; i < x->n_depends; i++) {
		SAME(depends[i].type);
		SAME(depends[i].job);
		SAME(depends[i].array_index);
		SAME(depends[i].delay_us);
	}
	SAME(depends_any);
	SAME(kill_on_invalid_dep);
	SAME(script_bytes);
	SAME_STR(script);
	SAME_LIST(script_args);
	SAME(ntasks);
	SAME(ntasks_per_node);
	SAME(cpus_per_task);
	SAME_STR(memory_per);
	SAME_STR(chdir);
	SAME_STR(output);
	SAME_STR(error);
	SAME_STR(input);
	SAME(append);
	SAME(signal);
	SAME(signal_lead_us);
	SAME(signal_batch_only);
	SAME_MAP(annotations);
	SAME_MAP(labels);
	SAME_STR(context.cwd);
	SAME_MAP(context.environ);
	SAME(context.umask);
	SAME_LIST(mail_type);
	SAME_STR(mail_user);
	SAME_STR(notify.mail);
	SAME_STR(notify.webhook);
	SAME(notify.on);
	SAME(exclusive);
	SAME(isolation);
	SAME(n_groups);
	for (size_t i = 0; i < x->n_groups; i++)
		check_group(&x->groups[i], &y->groups[i], seed);
}

static void reads_back(struct gpuq_arena *a, const struct gpuq_spec *spec, const struct gpuq_val *v,
		       const char *via, unsigned long long seed)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_reader r = { .arena = a, .now_us = NOW_US, .err = &err };
	struct gpuq_spec back;
	int rc = gpuq_spec_read(&r, v, &back);

	cr_assert_eq(rc, 0, "%s (by %s, seed %llu)", err.text, via, seed);
	check_spec(spec, &back, seed);
}

static void check_all_ways(struct gpuq_arena *a, const struct gpuq_spec *spec,
			   unsigned long long seed)
{
	static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						   GPUQ_MSG_ITEMS_MAX };
	struct gpuq_val *v = gpuq_spec_write(a, spec), **docs, *wire;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t n;

	cr_assert_not_null(v);
	reads_back(a, spec, v, "tree", seed);
	gpuq_yaml_write(&b, v);
	cr_assert_eq(gpuq_yaml_parse(a, "-", b.data, b.len, &docs, &n, &err), 0,
		     "%s (seed %llu)\n%s", err.text, seed, gpuq_buf_str(&b));
	cr_assert_eq(n, 1);
	reads_back(a, spec, docs[0], "YAML", seed);
	gpuq_buf_clear(&b);
	gpuq_mp_write(&b, v);
	cr_assert_eq(gpuq_mp_read(a, &lim, b.data, b.len, &wire, &err), 0, "%s (seed %llu)",
		     err.text, seed);
	reads_back(a, spec, wire, "MessagePack", seed);
	gpuq_buf_done(&b);
}

Test(spec_roundtrip, random_specs_read_back_the_same)
{
	const char *given = getenv("GPUQ_SEED");
	const unsigned long long first =
		given ? strtoull(given, NULL, 0) : (unsigned long long)time(NULL);

	for (unsigned long long seed = first; seed < first + (given ? 1 : 500); seed++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct dice d = { seed * 2654435761u, &a };
		struct gpuq_spec spec;

		make_spec(&d, &spec);
		check_all_ways(&a, &spec, seed);
		gpuq_arena_done(&a);
	}
}

/* A spec from a file of any form reads back the same. */
Test(spec_roundtrip, examples_read_back_the_same)
{
	static const char *const files[] = {
		"hello.yaml",
		"gang.yaml",
		"array.yaml",
		"groups.yaml",
		"train.sh",
		"job-manifest.yaml",
		"seeds/dws-t4.yaml",
		"seeds/dws-a100.yaml",
		"seeds/gpushare-pod.yaml",
		"seeds/vcuda-pod.yaml",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		const char *path = gpuq_arena_printf(&a, "%s/examples/%s", SRCDIR, files[i]);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_specs specs;
		char content[8192];
		FILE *f = fopen(path, "r");
		size_t n;

		cr_assert_not_null(f, "%s", path);
		n = fread(content, 1, sizeof(content) - 1, f);
		content[n] = 0;
		fclose(f);
		cr_assert_eq(spec_read_text(&a, files[i], content, NULL, &specs, NULL, &err), 0,
			     "%s", err.text);
		for (size_t k = 0; k < specs.n; k++)
			check_all_ways(&a, &specs.items[k], 0);
		gpuq_arena_done(&a);
	}
}

/* Written or read with too little memory, a job is refused or whole: never one that lacks a key. */
Test(spec_roundtrip, with_too_little_memory_nothing_is_lost)
{
	static const char file[] = "time: 1h\n"
				   "queue: q\n"
				   "node_selector: {a: b}\n"
				   "groups:\n"
				   "- {name: a, command: [x, y], gpus: 2, env: {A: b}}\n"
				   "- {name: b, command: z, gpus: 1, gpu_cores: 30}\n";
	struct gpuq_arena whole = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;
	struct gpuq_val *want;
	bool was_written = false;

	cr_assert_eq(spec_read_text(&whole, "f", file, NULL, &specs, NULL, &err), 0, "%s",
		     err.text);
	want = gpuq_spec_write(&whole, &specs.items[0]);
	for (size_t room = 1024; room < 64 << 10; room += 16) {
		struct gpuq_arena small = GPUQ_ARENA_INIT(room);
		struct gpuq_specs got = { 0 };
		const int rc = spec_read_text(&small, "f", file, NULL, &got, NULL, NULL);
		struct gpuq_val *v = rc == 0 ? gpuq_spec_write(&small, &got.items[0]) : NULL;

		cr_assert(rc == 0 || rc == GPUQ_ENOMEM, "room %zu: %d", room, rc);
		cr_assert(!v || gpuq_val_equal(v, want), "room %zu", room);
		was_written = v != NULL;
		gpuq_arena_done(&small);
	}
	cr_assert(was_written);
	gpuq_arena_done(&whole);
}
