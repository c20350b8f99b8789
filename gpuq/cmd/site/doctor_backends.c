#include "gpuq/cmd/site/doctor_backends.h"

#include <inttypes.h>
#include <string.h>

#include "libgpuq/arena.h"

#define NAMED 3 /* nodes that a finding names */

/* ---- signs ---- */

static const char *label(const struct gpuq_val *node, const char *key)
{
	return gpuq_get_str(gpuq_get(node, "labels"), key, "");
}

static bool labelled(const struct gpuq_val *node, const char *key, const char *value)
{
	return strcmp(label(node, key), value) == 0;
}

static int64_t offers(const struct gpuq_val *node, const char *resource)
{
	return gpuq_get_int(gpuq_get(gpuq_get(node, "resources"), resource), "total", 0);
}

static bool shares(const struct gpuq_val *node, const char *word)
{
	return strcmp(gpuq_get_str(node, "sharing", ""), word) == 0;
}

static bool has_mig(const struct gpuq_val *node)
{
	return gpuq_get(node, "mig") != NULL;
}

/* Devices that are left uncut beside MIG instances count as well. */
static bool is_whole(const struct gpuq_val *node)
{
	return shares(node, "whole") ||
	       (has_mig(node) && labelled(node, "gpuq.io/sharing", "whole"));
}

static bool is_sliced(const struct gpuq_val *node)
{
	return shares(node, "time-slicing");
}

static bool is_mps(const struct gpuq_val *node)
{
	return shares(node, "mps");
}

static bool is_gpushare(const struct gpuq_val *node)
{
	return shares(node, "gpushare") || shares(node, "gpushare-mib");
}

static bool is_gpu_manager(const struct gpuq_val *node)
{
	return shares(node, "gpu-manager");
}

static bool is_hami(const struct gpuq_val *node)
{
	return shares(node, "hami");
}

/* ---- faults ---- */

/* The plugin offers nothing under the single strategy, since the cards of the node are not all cut alike. */
static bool cut_unlike(const struct gpuq_val *node)
{
	return labelled(node, "nvidia.com/mig.strategy", "single") &&
	       strstr(label(node, "nvidia.com/gpu.product"), "-MIG-INVALID") != NULL;
}

/* Labels show devices that no plugin offers. */
static bool no_plugin(const struct gpuq_val *node)
{
	return !cut_unlike(node) &&
	       (labelled(node, "nvidia.com/gpu.present", "true") ||
		labelled(node, "feature.node.kubernetes.io/pci-10de.present", "true") ||
		*label(node, "nvidia.com/gpu.product")) &&
	       gpuq_get_int(node, "gpus", 0) == 0 && !*gpuq_get_str(node, "sharing", "") &&
	       offers(node, "nvidia.com/gpu") == 0 && offers(node, "nvidia.com/gpu.shared") == 0 &&
	       !*gpuq_get_str(node, "note", ""); /* which says what is wrong */
}

static bool no_discovery(const struct gpuq_val *node)
{
	const struct gpuq_val *devices = gpuq_get(node, "devices");

	return offers(node, "nvidia.com/gpu") + offers(node, "nvidia.com/gpu.shared") > 0 &&
	       !*label(node, "nvidia.com/gpu.product") && devices && devices->type == GPUQ_LIST &&
	       devices->n && !*gpuq_get_str(devices->items[0], "product", "");
}

/* Each belongs to the system that the node has. */
static bool no_discovery_whole(const struct gpuq_val *node)
{
	return is_whole(node) && no_discovery(node);
}

static bool no_discovery_sliced(const struct gpuq_val *node)
{
	return is_sliced(node) && no_discovery(node);
}

static bool no_discovery_mps(const struct gpuq_val *node)
{
	return is_mps(node) && no_discovery(node);
}

/* Replicas are offered, by the name or by the product that feature discovery gives, and none is used. */
static bool no_replicas(const struct gpuq_val *node)
{
	static const char mark[] = "-SHARED";
	const char *product = label(node, "nvidia.com/gpu.product");
	const size_t len = strlen(product), tail = sizeof(mark) - 1;

	return gpuq_get_int(node, "gpus", 0) == 0 && !*gpuq_get_str(node, "sharing", "") &&
	       (offers(node, "nvidia.com/gpu.shared") > 0 ||
		(offers(node, "nvidia.com/gpu") > 0 &&
		 (labelled(node, "nvidia.com/gpu.sharing-strategy", "time-slicing") ||
		  labelled(node, "nvidia.com/gpu.sharing-strategy", "mps") ||
		  (len > tail && strcmp(product + len - tail, mark) == 0))));
}

static bool no_mps_daemon(const struct gpuq_val *node)
{
	return labelled(node, "nvidia.com/gpu.sharing-strategy", "mps") &&
	       !labelled(node, "nvidia.com/mps.capable", "true");
}

static bool is_cut(const struct gpuq_val *node)
{
	const char *layout = label(node, "nvidia.com/mig.config");

	return *layout && strcmp(layout, "all-disabled") != 0;
}

static bool cut_failed(const struct gpuq_val *node)
{
	/* The label of one that gpuqd set is gone when the layout before is back. */
	return labelled(node, "nvidia.com/mig.config.state", "failed") ||
	       strcmp(gpuq_get_str(gpuq_get(node, "mig_layout"), "state", ""), "failed") == 0;
}

static bool wrong_strategy(const struct gpuq_val *node)
{
	return is_cut(node) && !cut_failed(node) &&
	       labelled(node, "nvidia.com/mig.strategy", "none");
}

static bool no_gpushare(const struct gpuq_val *node)
{
	return labelled(node, "gpushare", "true") && !is_gpushare(node);
}

static bool no_gpushare_label(const struct gpuq_val *node)
{
	return is_gpushare(node) && !labelled(node, "gpushare", "true");
}

static bool no_gpu_manager(const struct gpuq_val *node)
{
	return labelled(node, "nvidia-device-enable", "enable") && !is_gpu_manager(node);
}

/* The word with which a node's note begins that is left alone. */
static bool notes(const struct gpuq_val *node, const char *word)
{
	return gpuq_get_int(node, "gpus", 0) == 0 &&
	       strncmp(gpuq_get_str(node, "note", ""), word, strlen(word)) == 0;
}

static bool half_gpu_manager(const struct gpuq_val *node)
{
	return notes(node, "tencent.com/") && !is_gpu_manager(node) && !no_gpu_manager(node);
}

static bool no_register(const struct gpuq_val *node)
{
	return notes(node, "hami.io/") || notes(node, "gpu=on ");
}

static bool no_hami(const struct gpuq_val *node)
{
	return labelled(node, "gpu", "on") && gpuq_get_int(node, "gpus", 0) == 0 &&
	       !is_hami(node) && !no_register(node);
}

static const struct fault {
	const char *backend;
	bool (*is)(const struct gpuq_val *node);
	const char *what, *advice;
} faults[] = {
	{ "whole devices", no_plugin, "labels show NVIDIA devices, and no plugin offers them",
	  "check that the device plugin runs there, and that its containers see devices: nvidia "
	  "as the default runtime of containerd, or as RuntimeClass of the plugin" },
	{ "whole devices", no_discovery_whole, "product and memory of the devices are not known",
	  "install GPU feature discovery, or describe the nodes in inventory of the site" },
	{ "time-slicing", no_discovery_sliced, "product and memory of the devices are not known",
	  "install GPU feature discovery, or describe the nodes in inventory of the site" },
	{ "time-slicing", no_replicas,
	  "devices are offered in replicas, none of which is used: label nvidia.com/gpu.replicas "
	  "does "
	  "not say in how many",
	  "install GPU feature discovery, or have replicas in inventory of the site" },
	{ "mps", no_discovery_mps, "product and memory of the devices are not known",
	  "install GPU feature discovery, or describe the nodes in inventory of the site" },
	{ "mps", no_mps_daemon, "replicas under MPS without label nvidia.com/mps.capable=true",
	  "set the label: the MPS control daemon runs only where it is set" },
	{ "mig", cut_failed, "the MIG manager could not cut the cards",
	  "see the log of the MIG manager; meanwhile pods use the cards as they are cut now" },
	{ "mig", wrong_strategy, "cards are cut, and the plugin's MIG strategy is none",
	  "set the strategy of the device plugin and of GPU feature discovery to mixed or single" },
	{ "mig", cut_unlike,
	  "the MIG strategy single needs all cards of a node cut into instances of one profile, "
	  "and "
	  "these are not",
	  "cut all cards of the node alike, or set the strategy of the device plugin and of GPU "
	  "feature discovery to mixed" },
	{ "gpushare", no_gpushare, "label gpushare=true, and no memory is offered",
	  "check that the gpushare device plugin runs there, with nvidia as the default runtime" },
	{ "gpushare", no_gpushare_label, "device memory is offered without label gpushare=true",
	  "set the label: the plugin runs only where it is set" },
	{ "gpu-manager", no_gpu_manager,
	  "label nvidia-device-enable=enable, and no cores with memory are offered",
	  "check that gpu-manager runs there: it offers tencent.com/vcuda-core and vcuda-memory" },
	{ "gpu-manager", half_gpu_manager,
	  "cores are offered without memory, or memory without cores",
	  "check that gpu-manager runs there: it offers tencent.com/vcuda-core and vcuda-memory" },
	{ "hami", no_hami, "label gpu=on, and no devices are offered",
	  "check that the device plugin of HAMi runs there" },
	{ "hami", no_register, "devices are offered, and the register of the cards cannot be used",
	  "NOTE of gpuq nodes -s says why; the plugin writes annotation "
	  "hami.io/node-nvidia-register, and a node that is not HAMi's has no label gpu=on" },
};

#define N_FAULTS (sizeof(faults) / sizeof(faults[0]))

static const struct backend {
	const char *name;
	bool (*is)(const struct gpuq_val *node); /* NULL = not a system of gpuqd's */
	const char *unserved; /* instead: what becomes of it */
} backends[] = {
	{ "whole devices", is_whole, NULL },
	{ "time-slicing", is_sliced, NULL },
	{ "mps", is_mps, NULL },
	{ "mig", has_mig, NULL },
	{ "gpushare", is_gpushare, NULL },
	{ "gpu-manager", is_gpu_manager, NULL },
	{ "hami", is_hami, NULL },
	{ "kubeshare", NULL, "its pods are counted as foreign" },
	{ "kai fractions", NULL, "its pods are counted as foreign" },
};

/* ---- findings ---- */

struct backends {
	struct gpuq_arena *a;
	const struct gpuq_val *nodes, *rights;
	void (*fn)(void *arg, const struct doctor_backend *b);
	void *arg;
};

static void say(const struct backends *x, const char *backend, const char *state, const char *text,
		const char *advice)
{
	x->fn(x->arg, &(struct doctor_backend){ backend, state, text ? text : "", advice });
}

static bool is_broken(const struct gpuq_val *node, const char *backend)
{
	for (size_t i = 0; i < N_FAULTS; i++)
		if (strcmp(faults[i].backend, backend) == 0 && faults[i].is(node))
			return true;
	return false;
}

/* Which nodes a finding is of. */
struct pick {
	bool (*is)(const struct gpuq_val *node);
	const char *sound; /* without those where this backend is broken; NULL = with them */
	bool (*also)(const struct gpuq_val *node); /* NULL = any */
	bool any; /* whether gpuqd places pods there or not; else only where `served` is so */
	bool served;
};

static bool picks(const struct pick *p, const struct gpuq_val *node)
{
	return p->is(node) && (p->any || gpuq_get_int(node, "gpus", 0) > 0) &&
	       (p->any || gpuq_get_bool(node, "served", true) == p->served) &&
	       (!p->also || p->also(node)) && !(p->sound && is_broken(node, p->sound));
}

/* Return "n1, n2 and 3 more" of the nodes; "" = of none. Their number is stored in *count (may be NULL). */
static const char *named(const struct backends *x, const struct pick *p, int64_t *count)
{
	const char *text = "";
	int64_t n = 0;

	for (uint32_t i = 0; i < x->nodes->n; i++)
		if (picks(p, x->nodes->items[i]) && ++n <= NAMED)
			text = gpuq_arena_printf(x->a, "%s%s%s", text ? text : "",
						 n > 1 ? ", " : "",
						 gpuq_get_str(x->nodes->items[i], "name", "?"));
	if (count)
		*count = n;
	return n > NAMED ? gpuq_arena_printf(x->a, "%s and %" PRId64 " more", text ? text : "",
					     n - NAMED)
			 : text;
}

int doctor_has(const struct gpuq_val *rights, const char *name)
{
	const struct gpuq_val *list = gpuq_get(rights, "things");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *found = gpuq_get(list->items[i], "found");

		if (strcmp(gpuq_get_str(list->items[i], "name", ""), name) == 0)
			return found && found->type == GPUQ_BOOL ? found->b : -1;
	}
	return -1;
}

static bool has_none(const struct gpuq_val *node)
{
	return gpuq_get_int(node, "gpus", 0) == 0;
}

/* True if a device of the node can be used: of a node that was drained as well, whose system is in order. */
static bool works(const struct gpuq_val *node)
{
	const struct gpuq_val *devices = gpuq_get(node, "devices");
	const char *state = gpuq_get_str(node, "state", "");

	if (has_none(node) || strcmp(state, "down") == 0 || strcmp(state, "suspect") == 0)
		return false;
	if (!devices || devices->type != GPUQ_LIST || devices->n == 0)
		return true;
	for (uint32_t i = 0; i < devices->n; i++)
		if (strcmp(gpuq_get_str(devices->items[i], "state", ""), "unhealthy") != 0)
			return true;
	return false;
}

static bool fails(const struct gpuq_val *node)
{
	return !works(node);
}

/* Report a system of which no node has a device that can be used now. */
static void say_none_works(const struct backends *x, const char *backend, const char *on)
{
	say(x, backend, "broken",
	    gpuq_arena_printf(x->a, "%s: no device can be used now: %s", backend, on),
	    "the finding nodes says why, and NOTE of gpuq nodes -s");
}

/* Report the nodes of a backend that have no device which can be used, where no fault tells why. */
static bool look_at_unused(const struct backends *x, const struct backend *b)
{
	const struct pick none = { .is = b->is, .sound = b->name, .any = true, .also = has_none };
	const char *on = named(x, &none, NULL);

	if (*on)
		say(x, b->name, "broken",
		    gpuq_arena_printf(x->a, "%s: none of the offered devices can be used: %s",
				      b->name, on),
		    "NOTE of gpuq nodes -s says why");
	return *on;
}

/* Report the sound nodes of a backend. False: there are none. */
static bool look_at_nodes(const struct backends *x, const struct backend *b)
{
	const struct pick ours = { .is = b->is, .sound = b->name, .served = true, .also = works };
	const struct pick sick = { .is = b->is, .sound = b->name, .served = true, .also = fails };
	const struct pick theirs = { .is = b->is, .sound = b->name, .served = false };
	int64_t n_ours = 0, n_theirs = 0, n_sick = 0;
	const char *none = named(x, &sick, &n_sick);
	const char *on = named(x, &ours, &n_ours), *not_on = named(x, &theirs, &n_theirs);
	const int64_t n = n_ours + n_theirs;

	if (n_ours && n_theirs) {
		on = gpuq_arena_printf(x->a, "%" PRId64 " of %" PRId64 " nodes: %s", n_ours, n, on);
		not_on = gpuq_arena_printf(x->a, "%" PRId64 " of %" PRId64 " nodes: %s", n_theirs,
					   n, not_on);
	}
	if (n_ours)
		say(x, b->name, "usable", gpuq_arena_printf(x->a, "%s: usable on %s", b->name, on),
		    "");
	if (n_theirs)
		say(x, b->name, "unserved",
		    gpuq_arena_printf(x->a, "%s: its own scheduler allocates the devices of %s",
				      b->name, not_on),
		    "");
	if (n_ours == 0 && n_sick)
		say_none_works(x, b->name, none);
	return n > 0 || n_sick > 0;
}

static void look_at(const struct backends *x, const struct backend *b)
{
	const bool no_class = doctor_has(x->rights, "RuntimeClass nvidia") == 0;
	bool broken = false, seen;

	for (size_t i = 0; i < N_FAULTS; i++) {
		const struct pick p = { .is = faults[i].is, .any = true };
		const char *where =
			strcmp(faults[i].backend, b->name) == 0 ? named(x, &p, NULL) : NULL;

		if (!where || !*where)
			continue;
		broken = true;
		say(x, b->name, "broken",
		    gpuq_arena_printf(x->a, "%s: %s%s: %s", b->name, faults[i].what,
				      faults[i].is == no_plugin && no_class
					      ? ", and there is no RuntimeClass nvidia"
					      : "",
				      where),
		    faults[i].advice);
	}
	if (!b->is) {
		say(x, b->name, "unserved",
		    gpuq_arena_printf(x->a, "%s: not served: %s", b->name, b->unserved), "");
		return;
	}
	seen = look_at_unused(x, b);
	seen |= look_at_nodes(x, b);
	if (!seen && !broken)
		say(x, b->name, "absent", gpuq_arena_printf(x->a, "%s: no node has it", b->name),
		    "");
}

static bool is_of(const struct gpuq_val *right, const char *feature)
{
	return strcmp(gpuq_get_str(right, "feature", ""), feature) == 0;
}

static bool is_lacking(const struct gpuq_val *right)
{
	return gpuq_get_bool(right, "asked", true) && !gpuq_get_bool(right, "allowed", true);
}

/* Return the first right that a feature lacks in that namespace ("" for the cluster as a whole), "patch
 * resourceclaims/status"; NULL = none, or not known. */
static const char *lacks_of(const struct backends *x, const char *feature, const char *namespace_)
{
	const struct gpuq_val *rows = gpuq_get(x->rights, "rights");

	for (uint32_t i = 0; rows && rows->type == GPUQ_LIST && i < rows->n; i++) {
		const struct gpuq_val *r = rows->items[i];

		if (is_of(r, feature) && is_lacking(r) &&
		    strcmp(gpuq_get_str(r, "namespace", ""), namespace_) == 0)
			return gpuq_arena_printf(x->a, "%s %s", gpuq_get_str(r, "verb", ""),
						 gpuq_get_str(r, "resource", ""));
	}
	return NULL;
}

/* Names of namespaces that lack rights of a feature, and those that lack none. */
struct spaces {
	const char *lacking, *sound;
	uint32_t n_lacking, n_sound;
	const char *first; /* right that the first one lacks; NULL = none lacks any */
};

static const char *append(const struct backends *x, const char *text, uint32_t n, const char *name)
{
	return n > NAMED ? text : gpuq_arena_printf(x->a, "%s%s%s", text, n > 1 ? ", " : "", name);
}

static struct spaces spaces_of(const struct backends *x, const char *feature)
{
	const struct gpuq_val *rows = gpuq_get(x->rights, "rights");
	struct spaces out = { "", "", 0, 0, NULL };
	const char *last = "";

	for (uint32_t i = 0; rows && rows->type == GPUQ_LIST && i < rows->n; i++) {
		const char *ns = gpuq_get_str(rows->items[i], "namespace", ""), *lacks;
		bool seen = false;

		if (!is_of(rows->items[i], feature) || !*ns || strcmp(ns, last) == 0)
			continue;
		for (uint32_t k = 0; !seen && k < i; k++)
			seen = is_of(rows->items[k], feature) &&
			       strcmp(gpuq_get_str(rows->items[k], "namespace", ""), ns) == 0;
		last = ns;
		if (seen)
			continue;
		lacks = lacks_of(x, feature, ns);
		if (lacks) {
			out.lacking = append(x, out.lacking, ++out.n_lacking, ns);
			out.first = out.first ? out.first : lacks;
		} else {
			out.sound = append(x, out.sound, ++out.n_sound, ns);
		}
	}
	return out;
}

/* Return "a, b and 3 more". */
static const char *list_of(const struct backends *x, const char *names, uint32_t n)
{
	return n > NAMED ? gpuq_arena_printf(x->a, "%s and %" PRIu32 " more", names, n - NAMED)
			 : names;
}

/* True if rights of the feature were asked for: it is switched on. */
static bool is_on(const struct backends *x, const char *feature)
{
	const struct gpuq_val *rows = gpuq_get(x->rights, "rights");

	for (uint32_t i = 0; rows && rows->type == GPUQ_LIST && i < rows->n; i++)
		if (strcmp(gpuq_get_str(rows->items[i], "feature", ""), feature) == 0)
			return true;
	return false;
}

/* Return "DeviceClass X has extendedResourceName Y, ..." of those that have one; NULL = none has. */
static const char *extended_of(const struct backends *x)
{
	const struct gpuq_val *list = gpuq_get(x->rights, "classes");
	const char *text = NULL;

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		if (i == NAMED)
			return gpuq_arena_printf(x->a, "%s, and %" PRIu32 " more do", text,
						 list->n - i);
		text = gpuq_arena_printf(x->a, "%s%sDeviceClass %s has extendedResourceName %s",
					 text ? text : "", text ? ", " : "",
					 gpuq_get_str(list->items[i], "name", ""),
					 gpuq_get_str(list->items[i], "resource", ""));
	}
	return text;
}

static bool is_of_claims(const struct gpuq_val *node)
{
	return shares(node, "dra");
}

/* Report nodes whose slices are not used. list: of the reply; each has a name, and in `why` what else to say of it. True:
 * there are such. */
static bool look_at_slices(const struct backends *x, const char *list_name, const char *why,
			   const char *what, const char *advice)
{
	const struct gpuq_val *list = gpuq_get(x->rights, list_name);
	const char *text = NULL;

	if (!list || list->type != GPUQ_LIST || list->n == 0)
		return false;
	for (uint32_t i = 0; i < list->n && i < NAMED; i++)
		text = gpuq_arena_printf(x->a, "%s%s%s (%s)", text ? text : "", text ? ", " : "",
					 gpuq_get_str(list->items[i], "name", "?"),
					 gpuq_get_str(list->items[i], why, "?"));
	if (list->n > NAMED)
		text = gpuq_arena_printf(x->a, "%s and %" PRIu32 " more", text, list->n - NAMED);
	say(x, "dra", "broken", gpuq_arena_printf(x->a, "dra: %s: %s", what, text), advice);
	return true;
}

/* A plugin offers devices as well. */
static bool look_at_doubled(const struct backends *x)
{
	return look_at_slices(
		x, "doubled", "resource",
		"a device plugin offers devices as well, which are used, and the devices of "
		"ResourceSlices are not",
		"have one of the two on a node: for claims remove the device plugin there, "
		"otherwise "
		"the DRA driver");
}

/* They are of pools that cannot be used. */
static bool look_at_unusable(const struct backends *x)
{
	return look_at_slices(
		x, "unusable", "why",
		"ResourceSlices are there, but devices of them cannot be used",
		"see the log of the DRA driver there: a pool needs all slices of its newest "
		"generation, which agree on resourceSliceCount, and each device once");
}

static void look_at_claims(const struct backends *x)
{
	const bool doubled = look_at_doubled(x), unusable = look_at_unusable(x);
	const char *words = gpuq_get_str(gpuq_get(x->rights, "claims"), "words", "");
	const struct pick p = { .is = is_of_claims, .any = true, .also = works };
	const struct pick sick = { .is = is_of_claims, .any = true, .also = fails };
	const char *on = named(x, &p, NULL), *none = named(x, &sick, NULL);
	const char *extended = extended_of(x);
	const int v1 = doctor_has(x->rights, "resource.k8s.io/v1");
	const int beta = doctor_has(x->rights, "resource.k8s.io/v1beta2");
	const char *version = v1 > 0 ? "v1" : "v1beta2";
	const char *everywhere = lacks_of(x, "claims of devices", "");
	const struct spaces in = spaces_of(x, "claims of devices");
	const char *lacks = everywhere ? everywhere : in.n_sound ? NULL : in.first;

	if ((doubled || unusable) && !*on && !*none && !everywhere && !in.first)
		return; /* there are no others */
	if ((v1 > 0 || beta > 0) && in.first && !everywhere)
		say(x, "dra", "broken",
		    gpuq_arena_printf(x->a,
				      "dra: the cluster has resource.k8s.io/%s, but gpuqd may not "
				      "%s in namespace %s",
				      version, in.first, list_of(x, in.lacking, in.n_lacking)),
		    "apply the RoleBinding of etc/kubernetes/optional/dra.yaml there");
	if ((v1 > 0 || beta > 0) && !is_on(x, "claims of devices"))
		say(x, "dra", *words ? "unserved" : "absent",
		    gpuq_arena_printf(
			    x->a,
			    *words ? "dra: the cluster has resource.k8s.io/%s, but gpuqd "
				     "may not use it: %s"
				   : "dra: the cluster has resource.k8s.io/%s, but no node "
				     "has devices by it that gpuqd may see",
			    version, words),
		    "to use them, apply etc/kubernetes/optional/dra.yaml, and give a flavor its "
		    "device_class");
	else if ((v1 > 0 || beta > 0) && lacks && !everywhere)
		return;
	else if ((v1 > 0 || beta > 0) && lacks)
		say(x, "dra", "broken",
		    gpuq_arena_printf(
			    x->a, "dra: the cluster has resource.k8s.io/%s, but gpuqd may not %s",
			    version, lacks),
		    "apply etc/kubernetes/optional/dra.yaml, or its rule for that");
	else if ((v1 > 0 || beta > 0) && *none && !*on)
		say_none_works(x, "dra", none);
	else if (v1 > 0 || beta > 0)
		say(x, "dra", "usable",
		    gpuq_arena_printf(
			    x->a,
			    "dra: claims of devices are allocated "
			    "(resource.k8s.io/%s)%s%s%s%s%s%s%s",
			    version, *on ? " on " : "", on, in.first ? ", in namespace " : "",
			    in.first ? list_of(x, in.sound, in.n_sound) : "", extended ? "; " : "",
			    extended ? extended : "", extended ? ", which is not served" : ""),
		    extended ? "request such devices by claims" : "");
	else
		say(x, "dra", v1 < 0 ? "unknown" : "absent",
		    v1 < 0 ? "dra: not known whether the cluster has it"
			   : "dra: the cluster serves neither resource.k8s.io/v1 nor v1beta2",
		    "");
}

static void look_at_requests(const struct backends *x, const char *fault)
{
	const bool grows = is_on(x, "pools that grow");

	if (*fault)
		say(x, "provisioning requests", "broken",
		    "provisioning requests: pools that grow get no nodes by them",
		    "see the finding requests");
	else
		say(x, "provisioning requests", grows ? "usable" : "absent",
		    grows ? "provisioning requests: usable by the pools that grow"
			  : "provisioning requests: no pool grows by them",
		    "");
}

void doctor_backends(struct gpuq_arena *a, const struct gpuq_val *nodes,
		     const struct gpuq_val *rights, const char *requests,
		     void (*fn)(void *arg, const struct doctor_backend *b), void *arg)
{
	const struct backends x = { a, nodes, rights, fn, arg };

	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
		look_at(&x, &backends[i]);
	look_at_claims(&x);
	look_at_requests(&x, requests);
}
