/* version.h - one state of one object: its text, and the facts read from it
 *
 * Owns     the form in which objects are kept. A version never changes; it is
 *          shared by the store, the history, the watches and the snapshots.
 *
 * The text is `{"metadata":{...,"resourceVersion":"N"},...,"status":{...}}`
 * with a comma behind the end, so that a LIST is made of the texts as they
 * are, and kind and apiVersion go in front where one object is sent. The
 * resourceVersion is the last key of the metadata and the status the last key
 * of all: a status update copies bytes and parses nothing, which is what makes
 * tens of thousands of simulated pods cheap.
 */
#ifndef FAKEKUBE_VERSION_H
#define FAKEKUBE_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "kinds.h"
#include "res.h"
#include "util.h"

enum phase { PHASE_NONE, PHASE_PENDING, PHASE_RUNNING, PHASE_SUCCEEDED, PHASE_FAILED };

struct label {
	const char *key, *value;
};

struct container {
	const char *name;
	const char *image_json; /* quoted */
};

/* How the simulated kubelet shall run the pod: gpuq.test/ annotations. */
struct play {
	int64_t start_us, run_us, slow_exit_us, log_every_us;
	int exit_code, term_exit_code; /* of its own, and after SIGTERM */
	bool hang, oom, oom_child;
	const char *reject; /* NULL: admit */
	const char *waiting; /* a container that never starts, and why; or NULL */
	const char *log; /* "" if not given */
};

struct pod_facts {
	const char *node; /* "" while unbound */
	const char *restart_policy, *scheduler, *service_account;
	struct container *containers;
	size_t n_containers;
	const char *more_conditions; /* `,{...}` texts of conditions that others set, or "" */
	const char *qos;
	struct res requests;
	struct play play;
	int64_t grace_s; /* terminationGracePeriodSeconds */
	int64_t deadline_s; /* activeDeadlineSeconds, 0 for none */
	int64_t unreachable_s; /* tolerationSeconds for a lost node; -1 for ever, 0 none */
	unsigned n_gates;
};

/* Contents of metadata and spec. Shared by the versions that differ in status only. */
struct facts {
	unsigned refs;
	struct arena mem;
	const char *ns, *name, *uid; /* ns is "" for a cluster's own objects */
	struct label *labels;
	size_t n_labels;
	const char **owners; /* uids of ownerReferences */
	size_t n_owners;
	unsigned n_finalizers;
	const char *gpuq_annotations; /* JSON object of the gpuq.io/ annotations */
	bool unschedulable; /* nodes */
	bool immutable; /* configmaps */
	struct pod_facts pod; /* zero unless a pod */
};

struct version {
	unsigned refs;
	struct kind *kind;
	struct facts *facts;
	uint64_t rv;
	enum phase phase;
	char pod_ip[16];
	int64_t deletion_us; /* deletionTimestamp, 0 while not being deleted */
	int64_t deletion_grace_s;
	bool raw; /* text that no JSON library may read: a poison object */
	uint32_t len, rv_off, rv_len, status_off; /* status_off 0: no status */
	char s[]; /* len bytes, then ',' and '\0' */
};

/* Build from a whole object; metadata must hold name and uid. obj may be
 * changed. The caller owns the one reference. */
struct version *version_new(struct kind *kind, json_t *obj, uint64_t rv);

/* A copy of prev with another resourceVersion and, where not NULL or 0, another
 * status text and the first marks of deletion. */
struct version_edit {
	const char *status;
	size_t status_len;
	int64_t deletion_us;
	int64_t deletion_grace_s;
};
struct version *version_edit(const struct version *prev, uint64_t rv, const struct version_edit *e);

/* A version whose text is given as it is; it must hold a resourceVersion.
 * Takes over facts. */
struct version *version_raw(struct kind *kind, struct facts *facts, const char *text, size_t len,
			    uint64_t rv);

struct version *version_ref(struct version *v);
void version_unref(struct version *v);

/* The object as JSON, with kind and apiVersion; NULL for a raw one. */
json_t *version_json(const struct version *v);
/* Append the object as it is sent alone. */
void version_text(const struct version *v, struct buf *out);

const char *version_label(const struct version *v, const char *key); /* NULL if absent */
const char *phase_text(enum phase phase);
static inline bool phase_terminal(enum phase phase)
{
	return phase == PHASE_SUCCEEDED || phase == PHASE_FAILED;
}

#endif
