/* dra.h - devices that Kubernetes has as objects: dynamic resource allocation
 *
 * Owns     the ledger: slices, classes, claims and templates, as last reported. Touches memory only.
 * Used by  state/objects (keeps one), snapshot/ (where claims fit), flow/bind (what is allocated),
 *          cluster/kube (fills the structs).
 *
 * A driver publishes its devices in ResourceSlices. Slices of one pool belong together: those of the
 * newest generation, and only when all of them are there; until then the pool has no devices. A device
 * is in use while a claim is allocated to it, whoever allocated it; nothing but the allocator prevents
 * that two claims have the same one.
 *
 * Only devices that belong to one node are used. Strings are never NULL except where noted.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_H
#define GPUQD_DEVICES_DRA_DRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/cel/cel.h"
#include "libgpuq/spec.h"

#define DRA_SLICES_MAX 65536u /* of all drivers together; those beyond are left out */
#define DRA_DEVICES_MAX 128u /* of a slice, as in Kubernetes */
#define DRA_WORDS_MAX 64u /* attributes, capacities, counters, taints of one device */
#define DRA_NODE_DEVICES_MAX 1024u /* a node that has more is left alone */
#define DRA_RESULTS_MAX 32u /* of a claim, as in Kubernetes */

/* ---- ResourceSlice ---- */

/* An attribute, or a capacity. */
struct dra_word {
	const char *name; /* "gpu.nvidia.com/productName": with the domain, always */
	union {
		const char *text; /* of STRING and VERSION */
		int64_t number; /* of BOOL, INT and QUANTITY */
	};
	uint8_t type; /* enum gpuq_cel_type */
	bool capacity;
};

/* An amount of a counter that devices share. */
struct dra_counter {
	const char *set, *name;
	int64_t milli;
};

struct dra_taint {
	const char *key, *value, *effect;
};

struct dra_device {
	const char *name;
	const struct dra_word
		*words; /* in the ledger only those that not all devices of its slice have */
	const struct dra_word *common; /* the others; in the ledger alone */
	const struct dra_counter *consumes;
	const struct dra_taint *taints;
	uint16_t n_words, n_common, n_consumes, n_taints;
	/* Why gpuqd does not use it: a field that it does not know. NULL = it does. A static word. */
	const char *odd;
};

struct dra_slice {
	const char *name, *driver, *pool;
	int64_t generation, n_slices; /* of its pool */
	const char *node; /* "" = its devices do not belong to one node */
	const struct dra_device *devices;
	const struct dra_counter *counters; /* of its sets, as there are */
	uint32_t n_devices, n_counters;
};

/* ---- requests ---- */

/* One way to serve a request. */
struct dra_option {
	const char *name; /* of a subrequest; "" = of the request itself */
	const char *class_;
	struct gpuq_strlist selectors;
	const struct gpuq_toleration *tolerations;
	uint32_t n_tolerations;
	bool all; /* every device that fits */
	int64_t count;
};

struct dra_request {
	const char *name;
	const struct dra_option *options; /* in order of preference */
	uint32_t n_options;
};

/* Devices of these requests have the same value of an attribute. */
struct dra_constraint {
	const char *attribute; /* with its domain */
	struct gpuq_strlist requests; /* empty = all */
};

/* The devices that a claim requests. */
struct dra_spec {
	const struct dra_request *requests;
	const struct dra_constraint *constraints;
	uint32_t n_requests, n_constraints;
	const char *config; /* JSON, a list; "" none */
	const char
		*odd; /* why it cannot be served: a field that gpuqd does not know; "" = it can */
};

/* ---- DeviceClass, ResourceClaim, ResourceClaimTemplate ---- */

struct dra_class {
	const char *name;
	struct gpuq_strlist selectors;
	const char *extended; /* extendedResourceName; "" none */
	const char *config; /* as in dra_spec */
	const char *odd;
};

struct dra_result {
	const char *request, *driver, *pool, *device;
};

struct dra_claim {
	const char *namespace_, *name, *uid, *version;
	const char *owner; /* uid of the pod that it was made for; "" none */
	const char *owner_name; /* of that pod */
	const char *pod_claim; /* its name in that pod; "" none */
	bool ours; /* gpuqd made it */
	bool taken; /* gpuqd allocated it */
	bool leaving, finalizer; /* deletionTimestamp; protected from deletion */
	bool allocated;
	const char *node; /* to which its devices belong; "" = not to one */
	struct dra_spec spec;
	const struct dra_result *results; /* without those of administrators */
	struct gpuq_strlist reserved; /* uids of its consumers */
	struct gpuq_strlist consumers; /* their names */
	uint32_t n_results;
};

struct dra_template {
	const char *namespace_, *name;
	struct dra_spec spec;
};

/* An object; which one its kind tells (state/objects/object.h). */
union dra_fact {
	const struct dra_slice *slice;
	const struct dra_class *class_;
	const struct dra_claim *claim;
	const struct dra_template *template_;
};

/* ---- the ledger ---- */

struct dra;

struct dra *dra_new(void); /* NULL: no memory */
void dra_free(struct dra *d); /* NULL is fine */
struct dra *dra_copy(const struct dra *d); /* NULL: no memory */

/* Replace what is known of an object. False: nothing changes. */
bool dra_slice_seen(struct dra *d, const struct dra_slice *s);
bool dra_class_seen(struct dra *d, const struct dra_class *c);
bool dra_claim_seen(struct dra *d, const struct dra_claim *c);
bool dra_template_seen(struct dra *d, const struct dra_template *t);
bool dra_slice_gone(struct dra *d, const char *name);
bool dra_class_gone(struct dra *d, const char *name);
bool dra_claim_gone(struct dra *d, const char *namespace_, const char *name);
bool dra_template_gone(struct dra *d, const char *namespace_, const char *name);

/* Forget slices, classes, claims or templates: they can no longer be read. */
enum dra_kind { DRA_SLICES, DRA_CLASSES, DRA_CLAIMS, DRA_TEMPLATES };
void dra_clear(struct dra *d, enum dra_kind kind);

const struct dra_slice *dra_slice(const struct dra *d, const char *name);
size_t dra_count_slices(const struct dra *d);
size_t dra_bytes(const struct dra *d); /* of the slices */
/* Slices whose devices are used by no one, since they belong to no node. */
size_t dra_count_elsewhere(const struct dra *d);

const struct dra_class *dra_class(const struct dra *d, const char *name);
/* Return the class whose devices pods get that request this extended resource, the first by name where there are
 * several: by its extendedResourceName, or by the name that every class has so. NULL = none. */
const struct dra_class *dra_class_of_resource(const struct dra *d, const char *resource);
const struct dra_claim *dra_claim(const struct dra *d, const char *namespace_, const char *name);
/* Return the node whose devices are allocated to a claim; "" = none, or not those of one node. */
const char *dra_claim_node(const struct dra *d, const struct dra_claim *c);
/* The claim that was made for a claim of a pod, by its uid. */
const struct dra_claim *dra_claim_of(const struct dra *d, const char *pod_uid,
				     const char *pod_claim);
const struct dra_template *dra_template(const struct dra *d, const char *namespace_,
					const char *name);
/* Call fn for each until it returns false. */
void dra_each_claim(const struct dra *d, bool (*fn)(void *arg, const struct dra_claim *c),
		    void *arg);
void dra_each_class(const struct dra *d, bool (*fn)(void *arg, const struct dra_class *c),
		    void *arg);
/* Call fn for each node that has slices. */
void dra_each_node(const struct dra *d, void (*fn)(void *arg, const char *node), void *arg);

/* A device of a node. */
struct dra_at {
	const struct dra_slice *slice;
	const struct dra_device *device;
	const struct dra_claim *used; /* by which it is in use; NULL = it is not */
};

/* List the devices of complete pools of a node, by driver, pool and name. Returns how many, at most
 * DRA_NODE_DEVICES_MAX; *odd: why not all of them are in the list (a pool is not complete, or invalid, or
 * there are more), in the arena; NULL = all are. */
size_t dra_node(const struct dra *d, const char *node, struct gpuq_arena *a, struct dra_at **out,
		const char **odd);

/* Return how many attributes and capacities a device has, and one of them. */
static inline uint32_t dra_count_words(const struct dra_device *d)
{
	return (uint32_t)d->n_words + d->n_common;
}

static inline const struct dra_word *dra_word_at(const struct dra_device *d, uint32_t i)
{
	return i < d->n_words ? &d->words[i] : &d->common[i - d->n_words];
}

/* Return the value of an attribute or a capacity; NULL = the device lacks it. */
const struct dra_word *dra_word(const struct dra_device *d, bool capacity, const char *name);

/* Return the total of a counter that devices of the slice's pool share; -1 = the pool has none such. */
int64_t dra_counter(const struct dra *d, const struct dra_slice *s, const char *set,
		    const char *name);

/* ---- matching: dra_match.c ---- */

struct dra_pick {
	uint32_t claim; /* index of the spec */
	const struct dra_request *request;
	const struct dra_option *option;
	const struct dra_slice *slice;
	const struct dra_device *device;
};

enum dra_fit {
	DRA_FITS,
	DRA_FULL, /* there are such devices, but too few are free */
	DRA_NEVER, /* the node has too few of them */
	DRA_WAITS, /* an object that the claim names is not there, or cannot be served: see why */
};

/* Choose devices of the node for claims together. picks: room for DRA_RESULTS_MAX of each claim.
 * taken: devices, by their index in the list, that are in use besides; NULL = none. why: which object is
 * missing or what of it is not served, with DRA_WAITS; may be NULL. */
enum dra_fit dra_match(const struct dra *d, const struct dra_at *devices, size_t n_devices,
		       const bool *taken, const struct dra_spec *const *specs, size_t n_specs,
		       struct gpuq_arena *a, struct dra_pick *picks, size_t *n_picks,
		       struct gpuq_err *why);

/* Return how often claims that are made for each pod anew fit on the node, at most `most`. */
uint32_t dra_fits(const struct dra *d, const struct dra_at *devices, size_t n_devices,
		  const struct dra_spec *const *specs, size_t n_specs, uint32_t most);

/* Check that each object which a claim names is there and can be served. Returns 0, or GPUQ_ENOENT
 * (missing), GPUQ_EINVAL (not served) with the object in err->field and why in its text. */
int dra_check(const struct dra *d, const struct dra_spec *spec, struct gpuq_err *err);

#endif
