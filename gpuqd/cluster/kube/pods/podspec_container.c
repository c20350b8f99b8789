#include "gpuqd/cluster/kube/pods/podspec_container.h"
#include "gpuqd/cluster/kube/pods/podspec_code.h"
#include "gpuqd/cluster/kube/pods/podspec_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/devices/backend.h"
#include "gpuqd/cluster/kube/pods/podspec_int.h"
#include "gpuqd/cluster/kube/pods/podspec_share.h"
#include "libgpuq/buf.h"
#include "libgpuq/spec/resource.h"

#define VISIBLE "NVIDIA_VISIBLE_DEVICES"

static void set(json_t *obj, const char *key, const char *value)
{
	json_object_set_new(obj, key, json_string(value));
}

/* ---- environment ---- */

static void drop_env(json_t *env, const char *name)
{
	for (size_t i = json_array_size(env); i > 0; i--)
		if (strcmp(kube_str(json_array_get(env, i - 1), "name"), name) == 0)
			json_array_remove(env, i - 1);
}

/* Replace where it stands, or append, so that no name stands twice: which of two wins is a matter
 * of the runtime's. Later variables may refer to earlier ones, so the owner's order stays. */
static void set_env(json_t *env, const char *name, const char *value)
{
	json_t *one = json_pack("{s:s, s:s}", "name", name, "value", value), *have;
	bool there = false;
	size_t i;

	json_array_foreach(env, i, have)
	{
		if (strcmp(kube_str(have, "name"), name) != 0)
			continue;
		if (there) {
			drop_env(env, name);
			json_array_append_new(env, one);
			return;
		}
		there = true;
	}
	for (i = 0; there && i < json_array_size(env); i++)
		if (strcmp(kube_str(json_array_get(env, i), "name"), name) == 0) {
			json_array_set_new(env, i, one);
			return;
		}
	json_array_append_new(env, one);
}

static size_t word(const char *s)
{
	size_t n = 0;

	while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9') || s[n] == '-')
		n++;
	return n;
}

/* Dispatch writes pods' names where addresses are meant (MASTER_ADDR and its like),
 * with or without a domain behind; here a pod's address is NAME.SERVICE. */
static void put_addresses(const struct pod_order *o, const char *value, struct gpuq_buf *out)
{
	char service[PODSPEC_NAME_ROOM];

	podspec_service_name(o->cluster_id, o->job, o->array_index, service);
	while (*value) {
		struct pod_host host = { NULL, NULL };
		size_t n = word(value);

		for (uint32_t i = 0; i < o->n_pods && n > 0 && !host.name; i++)
			if (strlen(o->pod_names[i]) == n && memcmp(o->pod_names[i], value, n) == 0)
				host = o->hosts ? o->hosts[i]
						: (struct pod_host){ o->pod_names[i], NULL };
		if (!host.name)
			gpuq_buf_add(out, value, n ? n : 1);
		value += n ? n : 1;
		if (!host.name)
			continue;
		gpuq_buf_printf(out, "%s.%s", host.name, host.domain ? host.domain : service);
		while (*value == '.' && word(value + 1))
			value += 1 + word(value + 1);
	}
}

/* The kubelet reads $(NAME) as a reference and $$ as $, and a job's name may be any text. */
static const char *as_it_stands(const char *value, struct gpuq_buf *room)
{
	if (!strchr(value, '$'))
		return value;
	gpuq_buf_clear(room);
	for (; *value; value++) {
		if (*value == '$')
			gpuq_buf_addc(room, '$');
		gpuq_buf_addc(room, *value);
	}
	return gpuq_buf_str(room);
}

static void put_order_env(const struct pod_order *o, json_t *env)
{
	struct gpuq_buf value = GPUQ_BUF_INIT, room = GPUQ_BUF_INIT;
	/* How all pods of the gang are called; few values hold that. */
	const char *last = strrchr(o->name, '-');
	char stem[PODSPEC_NAME_ROOM];

	snprintf(stem, sizeof(stem), "%.*s", last ? (int)(last + 1 - o->name) : 0, o->name);
	for (size_t i = 0; i < o->env.n; i++) {
		gpuq_buf_clear(&value);
		if (podspec_has_service(o) && o->pod_names && strstr(o->env.vals[i], stem) &&
		    strcmp(o->env.keys[i], "GPUQ_POD_NAME") != 0)
			put_addresses(o, o->env.vals[i], &value);
		else
			gpuq_buf_adds(&value, o->env.vals[i]);
		set_env(env, o->env.keys[i], as_it_stands(gpuq_buf_str(&value), &room));
	}
	gpuq_buf_done(&value);
	gpuq_buf_done(&room);
}

/* Which devices a container sees is for the device plugin to say. Without any it must
 * see none: images bake "all" into their environment. */
static void put_env(const struct pod_order *o, const struct gpuq_group *g, json_t *container,
		    bool first, bool no_gpus)
{
	json_t *own = json_incref(podspec_array(container, "env")), *env = json_array();

	/* The group's are those of its first container, and of options. */
	for (size_t i = 0; first && i < g->env.n; i++)
		set_env(own, g->env.keys[i], g->env.vals[i]);
	/* gpuqd's come first, where the owner's can refer to them: $(GPUQ_POD_INDEX). */
	put_order_env(o, env);
	for (size_t i = 0; i < o->env.n; i++)
		drop_env(own, o->env.keys[i]);
	json_array_extend(env, own);
	json_decref(own);
	json_object_set_new(container, "env", env);
	drop_env(env, VISIBLE);
	if (no_gpus)
		set_env(env, VISIBLE, "void");
}

/* Init containers know the index as well, and nothing else of the order. */
static void put_completion_index(const struct pod_order *o, json_t *container)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, o->completion_index);
	set_env(podspec_array(container, "env"), "JOB_COMPLETION_INDEX", text);
}

/* ---- resources ---- */

static void milli(char *out, size_t room, int64_t n)
{
	if (n % 1000 == 0)
		snprintf(out, room, "%" PRId64, n / 1000);
	else
		snprintf(out, room, "%" PRId64 "m", n);
}

static void set_both(json_t *resources, const char *key, const char *value)
{
	set(podspec_object(resources, "limits"), key, value);
	set(podspec_object(resources, "requests"), key, value);
}

void podspec_machine(const struct gpuq_group *g, json_t *container)
{
	json_t *res = podspec_object(container, "resources");
	char text[32];

	if (g->cpu_milli) {
		milli(text, sizeof(text), g->cpu_milli);
		set_both(res, "cpu", text);
	}
	if (g->memory_bytes) {
		snprintf(text, sizeof(text), "%" PRId64, g->memory_bytes);
		set_both(res, "memory", text);
	}
}

static void put_resources(const struct pod_order *o, const struct gpuq_group *g, json_t *container)
{
	const bool own_name = o->device && *o->device;
	/* Under the single strategy instances have the name of whole devices. */
	const bool single = o->sharing && strcmp(o->sharing, "mig") == 0;
	json_t *res = podspec_object(container, "resources");
	char text[32], key[GPUQ_PROFILE_ROOM + 32], profile[GPUQ_PROFILE_ROOM];

	/* Devices of claims are requested by these. */
	for (size_t i = 0; i < g->n_claims; i++)
		json_array_append_new(podspec_array(res, "claims"),
				      json_pack("{s:s}", "name", g->claims[i].name));
	if (g->gpus_milli && !gpuq_group_device(g) && !gpuq_group_claimed(g)) {
		snprintf(text, sizeof(text), "%" PRId64, g->gpus_milli / 1000);
		snprintf(key, sizeof(key), "%s%s",
			 g->mig && !single ? "nvidia.com/mig-"
			 : own_name        ? o->device
					   : KUBE_GPU,
			 g->mig && !single ? gpuq_profile_resource(g->mig, profile) : "");
		set(podspec_object(res, "limits"), key, text);
	}
	for (size_t i = 0; i < g->n_resources; i++) {
		snprintf(text, sizeof(text), "%" PRId64, g->resources[i].count);
		set(podspec_object(res, "limits"), g->resources[i].name, text);
		/* The apiserver wants CPU or memory named beside huge pages, if only as none. */
		if (strncmp(g->resources[i].name, "hugepages-", strlen("hugepages-")) == 0)
			set(podspec_object(res, "requests"), "cpu", "0");
	}
	podspec_machine(g, container);
}

/* ---- one container in gpuq's own form ---- */

static json_t *strings(const struct gpuq_strlist *list)
{
	json_t *out = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(out, json_string(list->items[i]));
	return out;
}

/* True if a later volume is mounted over it: a job that was stored before this was refused. */
static bool is_covered(const struct gpuq_group *g, size_t i)
{
	for (size_t k = i + 1; k < g->n_volumes; k++)
		if (!g->volumes[k].given && strcmp(g->volumes[k].path, g->volumes[i].path) == 0)
			return true;
	return false;
}

static void put_volumes(const struct gpuq_group *g, json_t *spec, json_t *container)
{
	for (size_t i = 0; i < g->n_volumes; i++) {
		const struct gpuq_volume *v = &g->volumes[i];
		json_t *vol, *mount;
		char name[24];

		if (is_covered(g, i))
			continue;
		snprintf(name, sizeof(name), "v%zu", i);
		vol = json_pack("{s:s}", "name", name);
		mount = json_pack("{s:s, s:s}", "name", name, "mountPath", v->path);
		if (v->read_only)
			json_object_set_new(mount, "readOnly", json_true());
		if (v->sub_path)
			set(mount, "subPath", v->sub_path);
		if (v->claim)
			json_object_set_new(vol, "persistentVolumeClaim",
					    json_pack("{s:s}", "claimName", v->claim));
		else if (v->config_map)
			json_object_set_new(vol, "configMap",
					    json_pack("{s:s}", "name", v->config_map));
		else if (v->secret)
			json_object_set_new(vol, "secret",
					    json_pack("{s:s}", "secretName", v->secret));
		else if (v->host_path)
			json_object_set_new(vol, "hostPath",
					    json_pack("{s:s}", "path", v->host_path));
		else if (v->nfs)
			json_object_set_new(vol, "nfs",
					    json_pack("{s:s, s:s}", "server", v->nfs->server,
						      "path", v->nfs->path));
		else {
			char bytes[24];

			snprintf(bytes, sizeof(bytes), "%" PRId64, v->memory_bytes);
			json_object_set_new(
				vol, "emptyDir",
				json_pack("{s:s, s:s}", "medium", "Memory", "sizeLimit", bytes));
		}
		json_array_append_new(podspec_array(spec, "volumes"), vol);
		json_array_append_new(podspec_array(container, "volumeMounts"), mount);
	}
}

/* A script without a #! line cannot be executed by the kernel, only read by a shell. */
static void put_script(const struct pod_order *o, json_t *container)
{
	const char *s = o->spec->script;
	bool runs = o->spec->script_bytes >= 2 && s[0] == '#' && s[1] == '!';

	json_object_set_new(container, "command",
			    runs ? json_pack("[s]", SCRIPT_DIR "/script")
				 : json_pack("[s, s]", "/bin/sh", SCRIPT_DIR "/script"));
	json_object_set_new(container, "args", strings(&o->spec->script_args));
	json_array_append_new(podspec_array(container, "volumeMounts"),
			      json_pack("{s:s, s:s, s:b}", "name", SCRIPT_VOLUME, "mountPath",
					SCRIPT_DIR, "readOnly", 1));
}

/* Whoever attaches may come again to a terminal; other input ends with the first. */
static void put_terminal(const struct pod_order *o, json_t *container)
{
	if (o->spec->input_open || o->spec->tty)
		json_object_set_new(container, "stdin", json_true());
	if (o->spec->tty)
		json_object_set_new(container, "tty", json_true());
	else if (o->spec->input_open)
		json_object_set_new(container, "stdinOnce", json_true());
}

static int own_container(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
			 struct gpuq_err *err)
{
	char path[32];
	json_t *c;

	snprintf(path, sizeof(path), "groups[%u]", o->group);
	if (!o->image || !*o->image)
		return gpuq_fail_field(err, GPUQ_EINVAL, path,
				       "%s: no image: the job names none and its queue has none",
				       path);
	/* Parts of cards that claims have are requested by these. */
	if (!podspec_shared(o, NULL, NULL) && !gpuq_group_claimed(g) &&
	    (g->gpus_milli % 1000 || (!g->mig && (g->gpu_memory_bytes || g->gpu_cores))))
		return gpuq_fail_field(err, GPUQ_EINVAL, path,
				       "%s: a share of a device: this node allocates whole devices",
				       path);
	c = json_pack("{s:s}", "name", "main");
	json_array_append_new(podspec_array(spec, "containers"), c);
	if (g->command.n)
		json_object_set_new(c, "command", strings(&g->command));
	if (g->args.n)
		json_object_set_new(c, "args", strings(&g->args));
	if (g->workdir)
		set(c, "workingDir", g->workdir);
	put_volumes(g, spec, c);
	return 0;
}

/* ---- containers of a template ---- */

static int64_t gpus_of(const json_t *container, const char *device)
{
	const json_t *res = json_object_get(container, "resources");
	const json_t *limits = json_object_get(res, "limits"), *v = json_object_get(limits, device);

	if (json_is_integer(v))
		return json_integer_value(v);
	return json_is_string(v) ? strtoll(json_string_value(v), NULL, 10) : 0;
}

/* The group's figures were read from the template; where an option changed them since,
 * the first container that has devices (else the first) gets the difference right. */
static void fit_resources(const struct pod_order *o, const struct gpuq_group *g, json_t *containers)
{
	const struct gpuq_amount *named = gpuq_group_device(g);
	const char *device = named ? named->name : o->device && *o->device ? o->device : KUBE_GPU;
	json_t *c, *at = json_array_get(containers, 0);
	int64_t sum = 0, others;
	bool found = false;
	char text[24];
	size_t i;

	json_array_foreach(containers, i, c)
	{
		int64_t n = gpus_of(c, device);

		if (n > 0 && !found) {
			at = c;
			found = true;
		}
		sum += n;
	}
	if (g->mig || gpuq_group_claimed(g) || g->gpus_milli % 1000 ||
	    sum * 1000 == g->gpus_milli || (!sum && !g->gpus_milli))
		return;
	others = sum - gpus_of(at, device);
	if (others * 1000 > g->gpus_milli)
		return;
	snprintf(text, sizeof(text), "%" PRId64, g->gpus_milli / 1000 - others);
	set(podspec_object(podspec_object(at, "resources"), "limits"), device, text);
	json_object_del(json_object_get(json_object_get(at, "resources"), "requests"), device);
}

/* A template names instances by a resource of their own, and replicas of them by the one that they have where it was
 * renamed; on a node that kept the name of whole instances, or of whole devices, they are requested by that. */
static void rename_instances(const struct pod_order *o, const struct gpuq_group *g,
			     json_t *containers)
{
	static const char *const kinds[] = { "limits", "requests" };
	const bool single = o->sharing && strcmp(o->sharing, "mig") == 0;
	char from[GPUQ_PROFILE_ROOM + 32], to[GPUQ_PROFILE_ROOM + 32], name[GPUQ_PROFILE_ROOM];
	json_t *c;
	size_t i;

	if (!g->mig)
		return;
	snprintf(from, sizeof(from), GPUQ_RESOURCE_MIG "%s", gpuq_profile_name(g->mig, name));
	for (char *p = from; *p; p++)
		if (*p == '+')
			*p = '.';
	if (single)
		snprintf(to, sizeof(to), "%.100s", o->device && *o->device ? o->device : KUBE_GPU);
	else
		snprintf(to, sizeof(to), GPUQ_RESOURCE_MIG "%s",
			 gpuq_profile_resource(g->mig, name));
	if (strcmp(from, to) == 0)
		return;
	json_array_foreach(containers, i, c) for (size_t k = 0; k < 2; k++)
	{
		json_t *list = json_object_get(json_object_get(c, "resources"), kinds[k]),
		       *v = json_object_get(list, from);

		if (!v)
			continue;
		json_object_set(list, to, v);
		json_object_del(list, from);
	}
}

int podspec_containers(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		       struct gpuq_err *err)
{
	json_t *list = podspec_array(spec, "containers"), *first, *c;
	/* A job of no devices sees none, whatever its containers request. */
	const bool none = !g->gpus_milli && !g->mig && g->n_claims == 0;
	bool one_has;
	size_t i;
	int rc;

	if (!g->template_) {
		rc = own_container(o, g, spec, err);
		if (rc != 0)
			return rc;
		put_resources(o, g, json_array_get(list, 0));
	} else if (!podspec_shared(o, NULL, NULL)) {
		fit_resources(o, g, list);
		rename_instances(o, g, list);
	}
	first = json_array_get(list, 0);
	if (!json_is_object(first))
		return gpuq_fail_field(err, GPUQ_EINVAL, "template.spec.containers",
				       "template.spec.containers: expected at least one container");
	if (o->image && *o->image)
		set(first, "image", o->image);
	if (o->spec->script)
		put_script(o, first);
	if (!g->template_ && o->spec->code.digest)
		podspec_code(o, g, spec, first);
	if (!g->template_)
		podspec_steps(o, g, spec, first);
	if (!g->template_)
		podspec_output(o, g, first);
	put_terminal(o, first);
	/* Where no container says so, the devices of the group are the first one's. */
	one_has = none || podspec_asks_devices(o, list) || gpuq_group_claimed(g);
	json_array_foreach(list, i, c) put_env(
		o, g, c, i == 0, none || (!podspec_container_asks(o, c) && (one_has || i > 0)));
	json_array_foreach(json_object_get(spec, "initContainers"), i, c)
	{
		drop_env(json_object_get(c, "env"), VISIBLE);
		if (none || !podspec_container_asks(o, c))
			set_env(podspec_array(c, "env"), VISIBLE, "void");
		if (gpuq_path(g->template_, "metadata", "annotations", GPUQ_COMPLETION_INDEX, NULL))
			put_completion_index(o, c);
	}
	return 0;
}

/* A LimitRange gives its default to a container that names neither a request nor a limit. */
static void name_none(const struct gpuq_strlist *none, json_t *container)
{
	json_t *res = podspec_object(container, "resources");

	for (size_t i = 0; i < none->n; i++)
		if (!json_object_get(json_object_get(res, "limits"), none->items[i]) &&
		    !json_object_get(json_object_get(res, "requests"), none->items[i]))
			set_both(res, none->items[i], "0");
}

void podspec_none(const struct pod_order *o, json_t *spec)
{
	static const char *const lists[] = { "containers", "initContainers" };
	size_t i;
	json_t *c;

	for (size_t k = 0; o->none.n && k < 2; k++)
		json_array_foreach(json_object_get(spec, lists[k]), i, c) name_none(&o->none, c);
}
