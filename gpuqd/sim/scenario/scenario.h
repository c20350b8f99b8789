/* scenario.h - a cluster and its queues as text
 *
 * Owns     the format of scenario files: the keys, their defaults.
 * Touches  memory only.
 * Used by  gpuq-sim (check, run, shares).
 *
 * Numbers are kept as in the file: amounts of devices and times in thousandths (SC_ABSENT = not
 * given), times in the scenario's unit. world.c converts them.
 */
#ifndef GPUQD_SIM_SCENARIO_SCENARIO_H
#define GPUQD_SIM_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/val.h"

#define SC_ABSENT INT64_MIN
#define SC_NONE INT64_C(-1000) /* written as -1: unlimited */

/* Amounts by flavor; a plain number applies to each flavor. */
struct sc_amounts {
	int64_t all; /* SC_ABSENT if a map was given */
	const char **flavors; /* of the map */
	int64_t *amounts;
	size_t n;
};

enum { SC_USER, SC_MAINTENANCE }; /* kinds of reservations */

struct sc_reservation {
	const char *name, *queue;
	int64_t start, duration, gpus, every, release_after;
	struct gpuq_strlist nodes;
	const char *node;
	int kind; /* SC_USER, SC_MAINTENANCE */
	int at_end; /* enum site_at_end */
};

enum { SC_UNIT_SECOND, SC_UNIT_MINUTE, SC_UNIT_HOUR, SC_UNIT_DAY };

enum { SC_BUDGET_SOFT, SC_BUDGET_HARD };

struct sc_config {
	int64_t now, cycles; /* cycles in thousandths, too; SC_ABSENT = until nothing changes */
	int unit;
	POLICY_SCHED_GROUP(sched); /* as a snapshot has them */
	int budget_mode;
	struct gpuq_strmap licences;
	struct gpuq_objects reservations; /* struct sc_reservation */
	int64_t idle_window;
	struct gpuq_strmap priority_weights;
	int64_t usage_k, usage_half_life;
	struct gpuq_strlist topology_levels, flavors;
};

/* Small numbers in a row. */
struct sc_bytes {
	uint8_t *items;
	size_t n;
};

struct sc_node {
	const char *name, *pool, *flavor;
	int64_t gpus, cpu, mem_mb, gpu_mem_mb, max_pods, count, replicas; /* thousandths */
	struct sc_bytes links, numa; /* classes row by row; by device */
	struct gpuq_strmap labels, mig, resources;
	struct gpuq_objects taints; /* struct snap_taint */
	int state; /* enum snap_node_state */
};

/* Layouts of MIG instances that idle nodes of a pool may be given. */
struct sc_layouts {
	bool manager;
	struct gpuq_strlist names;
	int64_t again; /* in which a node does not get the same layout again; SC_ABSENT = an hour */
	int64_t delay; /* after which it has it; SC_ABSENT = a step gives it */
};

/* A pool that can get nodes that do not exist yet, or whose nodes may be cut. */
struct sc_pool {
	const char *name, *flavor;
	int64_t nodes, max; /* that exist at first; at most */
	int64_t gpus, cpu, mem_mb, gpu_mem_mb, price; /* thousandths */
	int64_t max_requests; /* at once, in thousandths; 0 = any number */
	bool spot; /* its nodes may be taken away */
	struct sc_layouts *mig; /* NULL = its nodes are not cut */
	int64_t provision_delay; /* from the request to its nodes; SC_ABSENT = a step brings them */
	struct gpuq_strmap labels;
	struct gpuq_objects taints; /* struct snap_taint */
	struct sc_node machine; /* made of these: one of its nodes */
};

struct sc_queue {
	const char *name, *parent;
	struct sc_amounts quota, shared_quota, limit, borrow_limit, lend_limit;
	POLICY_QUEUE_GROUP(policy); /* as a snapshot has them; rank and priorities in thousandths */
	int64_t quota_cpu, limit_cpu, quota_mem_mb, limit_mem_mb;
	bool spread;
	int64_t usage;
	int64_t budget_gpu_min, budget_used_gpu_min;
	int budget_mode; /* 0 = as in the config, else one more than the value there */
	int64_t user_max_running, user_max_gpus, job_max_gpus, max_running, max_gpus;
	int64_t idle_limit;
	struct gpuq_strlist flavors;
	const struct gpuq_flavor_rule *flavor_rules;
	int64_t max_spot_preemptions; /* thousandths */
};

struct sc_user {
	const char *name, *queue;
	int64_t usage; /* normalised, thousandths */
	int64_t used; /* thousandths of GPU-seconds */
};

struct sc_toleration {
	const char *key, *value, *effect, *op;
};

struct sc_tasks {
	int64_t count, gpus, gpu_mem_mb, cpu, mem_mb, rank; /* thousandths */
	const char *node, *role, *group;
	const char *mig; /* profile of its instance; NULL = none */
	struct gpuq_strlist mig_more; /* profiles that do as well */
	bool mig_ok; /* so does an instance that has gpu_mem_mb */
	int64_t *gpu_index; /* of a running task */
	size_t n_gpu_index;
	bool releasing;
	struct gpuq_strmap resources; /* countable ones */
	struct gpuq_strmap selector; /* labels its nodes must have */
	struct gpuq_objects tolerations; /* struct sc_toleration */
};

/* Return the amounts of a map of countable resources that holds, by name, in a; NULL: no memory. n:
 * how many. */
struct gpuq_amount *scenario_resources(struct gpuq_arena *a, const struct gpuq_strmap *map,
				       size_t *n);
/* True if each is a name with a number, or an amount of bytes where the name has those. */
bool scenario_resources_hold(const struct gpuq_strmap *map);

#define SC_MIG_MAX 32 /* profiles of a node; more are refused */

struct sc_slice {
	const char *level;
	int64_t size;
};

struct sc_topology {
	const char *required, *preferred;
	struct gpuq_objects slices; /* struct sc_slice */
};

struct sc_depend {
	int type; /* enum gpuq_depend_type */
	const char *job;
	int64_t delay;
};

struct sc_array {
	int64_t size, first, last, step, throttle; /* thousandths */
};

enum { SC_PREEMPT_REQUEUE, SC_PREEMPT_CANCEL };

struct sc_job {
	const char *name, *queue, *user, *jobname;
	int64_t priority, nice, boost, usage_factor, submit, start, walltime, walltime_min,
		fixed_priority, min_tasks, group_size, min_groups;
	bool preemptible, evict_last, stale, hold, exclusive, spread;
	struct gpuq_strmap role_min, licences;
	struct sc_topology topology;
	int preempt_mode, isolation;
	int64_t last_checkpoint, restart_cost, begin, deadline;
	int64_t use, idle_limit; /* use: percent of its devices in thousandths */
	struct gpuq_objects tasks; /* struct sc_tasks */
	struct sc_tasks alike; /* the keys of the job itself, if all its tasks are alike */
	struct gpuq_objects depends, depends_any; /* struct sc_depend */
	struct sc_array *array; /* NULL = none */
	struct gpuq_strlist flavors;
	const struct gpuq_flavor_rule *flavor_rules; /* of each flavor; NULL = none */
	int spot; /* enum gpuq_spot */
	struct gpuq_strlist exclude;
};

enum sc_event {
	SC_FINISH,
	SC_CANCEL,
	SC_SUBMIT,
	SC_ADVANCE,
	SC_NODE_DOWN,
	SC_NODE_UP,
	SC_HOLD,
	SC_RELEASE,
	SC_SET_PRIORITY,
	SC_SET_QUEUE,
	SC_USE,
	SC_REQUEST_FAILED,
	SC_NODE_CUT,
	SC_CUT_FAILED
};

struct sc_step {
	int event; /* enum sc_event */
	const char *job, *node, *queue, *pool;
	int64_t at, to, priority, exit_code, use, count;
	struct sc_job *submit; /* of a submit */
	const struct gpuq_val *then; /* NULL = no expectation */
};

struct sc_case {
	const char *id, *title;
	const char *file; /* that contains it */
	const struct gpuq_val *src; /* as in the file */
	struct sc_config config;
	struct gpuq_objects nodes, queues; /* struct sc_node, sc_queue */
	struct gpuq_objects pools; /* struct sc_pool */
	struct gpuq_objects users; /* struct sc_user */
	struct gpuq_objects running, pending; /* struct sc_job */
	struct sc_step *steps;
	size_t n_steps;
	const struct gpuq_val *expect; /* NULL = no expectation */
};

/* A case, as far as it could be read. */
struct sc_result {
	const char *id;
	struct sc_case *c; /* NULL = refused */
	struct gpuq_err err; /* the reason; expect may check it */
	const struct gpuq_val *expect;
};

extern const char *const scenario_events[]; /* by enum sc_event; ends with NULL */
const char *scenario_subject(const struct sc_step *s); /* the job or node it concerns; "" */

/* Read every case of a file's text. A case that is refused has its err set, and the others can
 * still be read. Returns 0; GPUQ_EINVAL when the text is no scenario file at all, GPUQ_ETOOBIG,
 * GPUQ_ENOMEM. */
int scenario_read(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		  struct sc_result **out, size_t *n_out, struct gpuq_err *err);

/* Fill in the only queue of a case without queues: its quota and limit are unlimited. */
void scenario_only_queue(struct sc_queue *q);

/* Convert a time of the case, in thousandths of its unit (SC_UNIT_*), to microseconds. Values out
 * of range become a time that never comes, yet small enough for sums. */
int64_t scenario_us(int unit, int64_t milli_units);

/* Make err's field one of entry i of that list: "queue" becomes "pending[2].queue". Returns err's
 * code. */
int scenario_within(struct gpuq_err *err, const char *list, size_t i);

/* Prefix an error about a field of the case with its place in the file: that of the field, or of
 * the object that lacks it. Returns err's code. */
int scenario_place(const struct sc_case *c, struct gpuq_err *err);

#endif
