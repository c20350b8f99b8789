#include "facts.h"

#include <stdlib.h>
#include <string.h>

int64_t play_default_run_us = 200 * 1000;
int64_t play_default_start_us = 20 * 1000;
int64_t play_default_exit_us = 10 * 1000;

static const char *get_text(struct arena *mem, const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s ? arena_strdup(mem, s) : "";
}

static void read_labels(struct facts *f, const json_t *labels)
{
	const char *key;
	json_t *value;

	f->labels = arena_alloc(&f->mem, json_object_size(labels) * sizeof(*f->labels));
	json_object_foreach((json_t *)labels, key, value)
	{
		if (!json_is_string(value))
			continue;
		f->labels[f->n_labels].key = arena_strdup(&f->mem, key);
		f->labels[f->n_labels++].value = arena_strdup(&f->mem, json_string_value(value));
	}
}

static void read_owners(struct facts *f, const json_t *owners)
{
	json_t *owner;
	size_t i;

	f->owners = arena_alloc(&f->mem, json_array_size(owners) * sizeof(*f->owners));
	json_array_foreach(owners, i, owner) f->owners[f->n_owners++] =
		get_text(&f->mem, owner, "uid");
}

static const char *gpuq_annotations(struct arena *mem, const json_t *annotations)
{
	struct buf b = BUF_INIT;
	const char *key, *text;
	json_t *value;

	json_object_foreach((json_t *)annotations, key, value)
	{
		if (strncmp(key, "gpuq.io/", 8) != 0 || !json_is_string(value))
			continue;
		buf_adds(&b, b.len ? "," : "{");
		buf_add_json(&b, key, strlen(key));
		buf_adds(&b, ":");
		buf_add_json(&b, json_string_value(value), json_string_length(value));
	}
	if (!b.len)
		return "{}";
	buf_adds(&b, "}");
	text = arena_strdup(mem, b.s);
	buf_done(&b);
	return text;
}

/* A row per annotation that holds a number: durations in microseconds. */
static const struct play_key {
	const char *key;
	size_t offset;
} play_durations[] = {
	{ "gpuq.test/start", offsetof(struct play, start_us) },
	{ "gpuq.test/run", offsetof(struct play, run_us) },
	{ "gpuq.test/slow-exit", offsetof(struct play, slow_exit_us) },
	{ "gpuq.test/log-every", offsetof(struct play, log_every_us) },
};

static const struct play_key play_codes[] = {
	{ "gpuq.test/exit-code", offsetof(struct play, exit_code) },
	{ "gpuq.test/term-exit-code", offsetof(struct play, term_exit_code) },
};

static bool annotation_true(const json_t *annotations, const char *key)
{
	const char *s = json_string_value(json_object_get(annotations, key));

	return s && strcmp(s, "false") != 0 && strcmp(s, "0") != 0;
}

static const char *read_play(struct play *p, const json_t *a, struct arena *mem)
{
	const char *bad = NULL, *s;
	uint64_t code;

	p->start_us = play_default_start_us;
	p->run_us = play_default_run_us;
	p->slow_exit_us = play_default_exit_us;
	p->term_exit_code = 143;
	p->log = "";
	if (!a)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(play_durations); i++) {
		int64_t *to = (int64_t *)((char *)p + play_durations[i].offset);

		s = json_string_value(json_object_get(a, play_durations[i].key));
		if (s && duration_parse(s, to) != 0)
			bad = play_durations[i].key;
	}
	for (size_t i = 0; i < ARRAY_LEN(play_codes); i++) {
		int *to = (int *)((char *)p + play_codes[i].offset);

		s = json_string_value(json_object_get(a, play_codes[i].key));
		if (s && (uint_parse(s, &code) != 0 || code > 255))
			bad = play_codes[i].key;
		else if (s)
			*to = (int)code;
	}
	p->hang = annotation_true(a, "gpuq.test/hang");
	p->oom = annotation_true(a, "gpuq.test/oom");
	p->oom_child = annotation_true(a, "gpuq.test/oom-child");
	s = json_string_value(json_object_get(a, "gpuq.test/reject"));
	if (s && annotation_true(a, "gpuq.test/reject") && mem)
		p->reject = arena_strdup(mem, s);
	s = json_string_value(json_object_get(a, "gpuq.test/waiting"));
	if (s && *s && mem)
		p->waiting = arena_strdup(mem, s);
	s = json_string_value(json_object_get(a, "gpuq.test/log"));
	if (s && mem)
		p->log = arena_strdup(mem, s);
	return bad;
}

const char *play_bad_key(const json_t *obj)
{
	struct play p = { 0 };

	return read_play(&p, json_object_get(json_object_get(obj, "metadata"), "annotations"),
			 NULL);
}

static void read_containers(struct facts *f, const json_t *containers)
{
	struct pod_facts *p = &f->pod;
	json_t *c;
	size_t i;

	p->containers = arena_alloc(&f->mem, json_array_size(containers) * sizeof(*p->containers));
	json_array_foreach(containers, i, c)
	{
		const json_t *image = json_object_get(c, "image");
		struct buf b = BUF_INIT;

		buf_add_json(&b, json_is_string(image) ? json_string_value(image) : "",
			     json_string_length(image));
		p->containers[i].name = get_text(&f->mem, c, "name");
		p->containers[i].image_json = arena_strdup(&f->mem, b.s);
		p->n_containers++;
		buf_done(&b);
	}
}

static bool condition_is_kubelets(const char *type)
{
	static const char *const own[] = { "PodScheduled", "PodReadyToStartContainers",
					   "Initialized", "ContainersReady", "Ready" };

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (strcmp(type, own[i]) == 0)
			return true;
	}
	return false;
}

/* Conditions that someone else wrote (DisruptionTarget) must outlive the
 * kubelet's next status: keep their text. */
static const char *more_conditions(struct arena *mem, const json_t *conditions)
{
	struct buf b = BUF_INIT;
	const char *text = "";
	json_t *c;
	size_t i;

	json_array_foreach(conditions, i, c)
	{
		const char *type = json_string_value(json_object_get(c, "type"));
		char *dump;

		if (!type || condition_is_kubelets(type))
			continue;
		dump = json_dumps(c, JSON_COMPACT);
		if (dump)
			buf_addf(&b, ",%s", dump);
		free(dump);
	}
	if (b.len)
		text = arena_strdup(mem, b.s);
	buf_done(&b);
	return text;
}

static int64_t unreachable_seconds(const json_t *tolerations)
{
	int64_t longest = 0;
	json_t *t;
	size_t i;

	json_array_foreach(tolerations, i, t)
	{
		const char *key = json_string_value(json_object_get(t, "key"));
		const char *effect = json_string_value(json_object_get(t, "effect"));
		const json_t *s = json_object_get(t, "tolerationSeconds");

		if (key && *key && strcmp(key, "node.kubernetes.io/unreachable") != 0)
			continue;
		if (effect && *effect && strcmp(effect, "NoExecute") != 0)
			continue;
		if (!json_is_integer(s))
			return -1;
		if (json_integer_value(s) > longest)
			longest = json_integer_value(s);
	}
	return longest;
}

static const char *qos_class(const json_t *spec)
{
	bool any = false, guaranteed = true;
	json_t *c;
	size_t i;

	json_array_foreach(json_object_get(spec, "containers"), i, c)
	{
		static const char *const names[] = { "cpu", "memory" };
		const json_t *r = json_object_get(c, "resources");
		const json_t *requests = json_object_get(r, "requests");
		const json_t *limits = json_object_get(r, "limits");

		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			const json_t *want = json_object_get(requests, names[k]);
			const json_t *most = json_object_get(limits, names[k]);

			any = any || want || most;
			if (!most || (want && !json_equal(want, most)))
				guaranteed = false;
		}
	}
	return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

static void read_pod(struct facts *f, const json_t *obj, const json_t *annotations)
{
	const json_t *spec = json_object_get(obj, "spec");
	const json_t *grace = json_object_get(spec, "terminationGracePeriodSeconds");
	struct pod_facts *p = &f->pod;

	p->node = get_text(&f->mem, spec, "nodeName");
	p->restart_policy = get_text(&f->mem, spec, "restartPolicy");
	p->scheduler = get_text(&f->mem, spec, "schedulerName");
	p->service_account = get_text(&f->mem, spec, "serviceAccountName");
	p->grace_s = json_is_integer(grace) ? json_integer_value(grace) : 30;
	p->deadline_s = json_integer_value(json_object_get(spec, "activeDeadlineSeconds"));
	p->unreachable_s = unreachable_seconds(json_object_get(spec, "tolerations"));
	p->n_gates = (unsigned)json_array_size(json_object_get(spec, "schedulingGates"));
	p->qos = qos_class(spec);
	p->more_conditions = more_conditions(
		&f->mem, json_object_get(json_object_get(obj, "status"), "conditions"));
	read_containers(f, json_object_get(spec, "containers"));
	res_of_pod(&p->requests, spec);
	read_play(&p->play, annotations, &f->mem);
}

struct facts *facts_new(struct kind *kind, const json_t *obj)
{
	const json_t *meta = json_object_get(obj, "metadata");
	const json_t *annotations = json_object_get(meta, "annotations");
	struct facts *f = xcalloc(1, sizeof(*f));

	f->refs = 1;
	f->ns = kind->namespaced ? get_text(&f->mem, meta, "namespace") : "";
	f->name = get_text(&f->mem, meta, "name");
	f->uid = get_text(&f->mem, meta, "uid");
	read_labels(f, json_object_get(meta, "labels"));
	read_owners(f, json_object_get(meta, "ownerReferences"));
	f->n_finalizers = (unsigned)json_array_size(json_object_get(meta, "finalizers"));
	f->gpuq_annotations = gpuq_annotations(&f->mem, annotations);
	f->unschedulable =
		json_is_true(json_object_get(json_object_get(obj, "spec"), "unschedulable"));
	f->immutable = json_is_true(json_object_get(obj, "immutable"));
	if (kind == &kinds[KIND_PODS])
		read_pod(f, obj, annotations);
	return f;
}

struct facts *facts_bare(const char *ns, const char *name, const char *uid)
{
	struct facts *f = xcalloc(1, sizeof(*f));

	f->refs = 1;
	f->ns = arena_strdup(&f->mem, ns);
	f->name = arena_strdup(&f->mem, name);
	f->uid = arena_strdup(&f->mem, uid);
	f->gpuq_annotations = "{}";
	f->pod.node = f->pod.restart_policy = f->pod.scheduler = f->pod.service_account = "";
	f->pod.more_conditions = "";
	f->pod.qos = "BestEffort";
	f->pod.play.log = "";
	return f;
}

void facts_unref(struct facts *f)
{
	if (--f->refs)
		return;
	arena_done(&f->mem);
	free(f);
}
