/* names.h - words that appear in C, on the wire and in front of people
 *
 * Owns     job states, pod states, reasons, causes: one list each, from which the
 *          enum, the long word, the short word and the manual's table follow.
 * Used by  core (the enums), rpc and the CLI (the words).
 */
#ifndef LIBGPUQ_NAMES_H
#define LIBGPUQ_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */

/* X(symbol, long, short, ended, doc) */
#define GPUQ_JOB_STATES(X)                                                                         \
	X(PENDING, "PENDING", "PD", false, "pending")                                              \
	X(PROVISIONING, "PROVISIONING", "PV", false, "pending; nodes were requested for it")       \
	X(STARTING, "STARTING", "CF", false, "pods created, not all running")                      \
	X(RUNNING, "RUNNING", "R", false, "running")                                               \
	X(COMPLETING, "COMPLETING", "CG", false, "ending; devices not yet free")                   \
	X(COMPLETED, "COMPLETED", "CD", true, "ended with exit code 0")                            \
	X(FAILED, "FAILED", "F", true, "ended with another exit code")                             \
	X(TIMEOUT, "TIMEOUT", "TO", true, "stopped at its time limit")                             \
	X(CANCELLED, "CANCELLED", "CA", true, "cancelled by its owner or an operator")             \
	X(NODE_FAIL, "NODE_FAIL", "NF", true, "ended by a failure of the infrastructure")          \
	X(OUT_OF_MEMORY, "OUT_OF_MEMORY", "OOM", true,                                             \
	  "killed for using more memory than it requested")                                        \
	X(DEADLINE, "DEADLINE", "DL", true, "its deadline passed")                                 \
	X(PREEMPTED, "PREEMPTED", "PR", true, "preempted, and may not be requeued")

enum gpuq_job_state {
#define X(sym, word, letters, ended, doc) GPUQ_JOB_##sym,
	GPUQ_JOB_STATES(X)
#undef X
		N_GPUQ_JOB_STATES
};

/* X(symbol, word, role that can act, doc) */
#define GPUQ_REASONS(X)                                                                            \
	X(NONE, "None", "nobody", "no reason; it can start")                                      \
	X(RESOURCES, "Resources", "nobody",                                                        \
	  "not enough free devices, CPU, memory or other resources now")                           \
	X(PRIORITY, "Priority", "nobody", "jobs ahead of it in queue order come first")            \
	X(BEGIN_TIME, "BeginTime", "user", "its begin time is in the future")                      \
	X(DEPENDENCY, "Dependency", "user", "it depends on other jobs")                            \
	X(DEPENDENCY_NEVER, "DependencyNever", "user", "its dependency can no longer be met")      \
	X(ARRAY_LIMIT, "ArrayLimit", "user",                                                       \
	  "its array already runs as many elements as its throttle allows")                        \
	X(RESERVATION, "Reservation", "operator", "the capacity is reserved")                      \
	X(LICENSE, "License", "operator", "not enough free licenses")                              \
	X(HELD_USER, "HeldUser", "user", "held by its owner")                                      \
	X(HELD_ADMIN, "HeldAdmin", "operator", "held by a manager or operator")                    \
	X(HELD_RETRIES, "HeldRetries", "user", "held: its retries are used up")                    \
	X(LIMIT_JOB, "LimitJob", "user", "it exceeds the limit per job")                           \
	X(LIMIT_USER, "LimitUser", "manager", "its owner is at a limit of the queue")              \
	X(LIMIT_QUEUE, "LimitQueue", "manager", "the queue is at its limit")                       \
	X(QUOTA, "Quota", "manager", "the queue is at its quota")                                  \
	X(FAIR_SHARE, "FairShare", "nobody", "the queue is at its fair share")                     \
	X(BUDGET, "Budget", "manager", "the remaining budget does not cover it")                  \
	X(BUDGET_COMMITTED, "BudgetCommitted", "manager",                                          \
	  "the budget is committed to running jobs")                                               \
	X(DEADLINE, "Deadline", "user", "it cannot end before its deadline")                       \
	X(UNSATISFIABLE, "Unsatisfiable", "user", "no node can hold its request")                  \
	X(NAMESPACE_QUOTA, "NamespaceQuota", "operator", "the ResourceQuota of the namespace is used up") \
	X(NODES_UNAVAILABLE, "NodesUnavailable", "operator", "nodes that fit are down, drained or suspect") \
	X(QUEUE_STOPPED, "QueueStopped", "manager", "the queue starts no jobs")                    \
	X(FRAGMENTED, "Fragmented", "nobody", "enough is free in total, but fragmented")           \
	X(CLAIMS_REST, "ClaimsRest", "nobody",                                                     \
	  "reclaim between these queues is suspended after repeated reversals")                    \
	X(VICTIMS, "Victims", "nobody", "its victims are being preempted")                         \
	X(PROVISIONING, "Provisioning", "nobody", "nodes were requested for it")                   \
	X(STARTING, "Starting", "nobody", "its pods are being started")                            \
	X(NOT_EVALUATED, "NotEvaluated", "nobody", "the scheduler has not evaluated it yet")        \
	X(CLAIM_SPARE, "ClaimSpare", "operator",                                                   \
	  "every candidate victim exceeds the request by more than claim_spare_max")               \
	X(RESTORED_UNKNOWN, "RestoredUnknown", "operator",                                         \
	  "held: it ran before a restore and may have ended since")                                \
	X(RECOVERING, "Recovering", "operator",                                                    \
	  "no job starts until the cluster has been listed after a restore")                       \
	X(FENCED, "Fenced", "operator",                                                            \
	  "another gpuqd acts under the identity of this one")                                     \
	X(CLUSTER_REFUSED, "ClusterRefused", "operator",                                           \
	  "the cluster refuses its pods, for reasons that are not the job's own")      \
	X(VOLUME_NOT_FOUND, "VolumeNotFound", "user", "its volume claim does not exist, or is lost") \
	X(VOLUME_PENDING, "VolumePending", "nobody", "its volume claim is not bound yet")          \
	X(NODES_AVOIDED, "NodesAvoided", "nobody",                                                 \
	  "nodes that fit have failed it, and it avoids them for a while")                         \
	X(PROVISIONING_FAILED, "ProvisioningFailed", "nobody",                                     \
	  "requests for nodes failed; they are made again later")                                  \
	X(PROVISIONING_LIMIT, "ProvisioningLimit", "operator",                                     \
	  "its pool allows no more requests for nodes at once")                                    \
	X(NODE_ENDS, "NodeEnds", "user",                                                           \
	  "nodes with room for it are taken away before it could end")                             \
	X(FLAVOR_WAIT, "FlavorWait", "user",                                                       \
	  "it waits for a flavor that it prefers before it uses the next")                        \
	X(MIG_LAYOUT, "MigLayout", "nobody",                                                       \
	  "a node is being cut into the MIG instances that it requests")                    \
	X(DEVICE_CLAIM, "DeviceClaim", "user", "a claim of devices is missing, or is not served")    \
	X(VOLUME_IN_USE, "VolumeInUse", "user",                                                    \
	  "its ReadWriteOncePod volume claim is in use by another pod")

enum gpuq_reason {
#define X(sym, word, who, doc) GPUQ_R_##sym,
	GPUQ_REASONS(X)
#undef X
		N_GPUQ_REASONS
};

/* Units of `have` and `need` of a reason; the word is in its `unit`. X(symbol, word) */
#define GPUQ_UNITS(X) \
	X(COUNT, "count") \
	X(GPUS, "gpus") \
	X(CORES, "cores") \
	X(BYTES, "bytes") \
	X(TIME, "time")

enum gpuq_unit {
#define X(sym, word) GPUQ_UNIT_##sym,
	GPUQ_UNITS(X)
#undef X
	N_GPUQ_UNITS
};

/* Why an attempt ended without its owner's doing. */
#define GPUQ_CAUSES(X)                                                                             \
	X(NONE, "none")                                                                            \
	X(RECLAIM, "reclaim")                                                                      \
	X(PREEMPT, "preempt")                                                                      \
	X(DRAIN, "drain")                                                                          \
	X(LIMIT, "limit")                                                                          \
	X(ADMIN, "admin")                                                                          \
	X(INFRA, "infra")                                                                          \
	X(CONSOLIDATE, "consolidate")                                                              \
	X(SHRINK, "shrink")                                                                        \
	X(REQUEUE, "requeue")                                                                      \
	X(YIELD, "yield")                                                                          \
	X(IDLE, "idle")

enum gpuq_cause {
#define X(sym, word) GPUQ_CAUSE_##sym,
	GPUQ_CAUSES(X)
#undef X
		N_GPUQ_CAUSES
};

/* The rule under which a job is preempted or relocated. X(symbol, word, word of earlier builds,
 * doc): stored records, scenarios and recorded cycles may hold the earlier one, "" = none. */
#define GPUQ_RULES(X)                                                                              \
	X(RECLAIM_QUOTA, "reclaim-quota", "G",                                                     \
	  "the preemptor is within its queue's quota, and the victim's queue was over its own")    \
	X(RECLAIM_SHARE, "reclaim-share", "F",                                                     \
	  "the preemptor is within its queue's fair share, and the victim's queue was over its own") \
	X(RECLAIM_BORROWED, "reclaim-borrowed", "B",                                               \
	  "the victim had a lower priority and ran on GPUs that its queue had borrowed")           \
	X(OWN, "own", "", "the preemptor precedes it in the same queue")                           \
	X(GANG, "gang", "", "it had lost pods and was below the minimum of its gang")              \
	X(CONSOLIDATION, "consolidation", "", "it was relocated to make room for a larger job")    \
	X(YIELD_PLANNED, "yield-to-planned-start", "3.4",                                          \
	  "it was backfilled ahead of a planned start, which is due")                              \
	X(YIELD_RESERVATION, "yield-to-reservation", "3.6", "a reservation begins on its nodes")   \
	X(SPOT, "spot", "", "its cloud took a node of a spot pool away")                           \
	X(RESERVATION_ENDS, "reservation-ends", "", "the reservation that it ran in ends")

enum gpuq_rule {
#define X(sym, word, before, doc) GPUQ_RULE_##sym,
	GPUQ_RULES(X)
#undef X
		N_GPUQ_RULES
};

/* The bounds that cut short the work of a cycle; gpuqd-scheduling(7), BOUNDS.
 * X(symbol, word, what was not done, what was counted up to the bound) */
#define GPUQ_BOUNDS(X)                                                                             \
	X(JOBS, "max_job_test", "no planned start", "blocked jobs were evaluated for one")         \
	X(MOMENTS, "moments", "no planned start", "moments were tried for those of all jobs")      \
	X(OWN_MOMENTS, "own_moments", "no planned start", "moments were tried for it")             \
	X(PLACEMENTS, "placements", "no further search for victims", "placements were tried")      \
	X(VICTIMS, "victims", "no further search for victims", "of them made no room")             \
	X(MOVES, "moves", "no further search for jobs to relocate", "nodes were tried")

/* X(symbol, word, doc) */
#define GPUQ_POD_STATES(X)                                                                         \
	X(PLANNED, "planned", "decided and stored; its creation may be under way")                 \
	X(CREATED, "created", "the cluster has it")                                                \
	X(RUNNING, "running", "its process runs")                                                  \
	X(LEAVING, "leaving", "signalled to end")                                                  \
	X(ENDED, "ended", "its process has ended; devices are free")                               \
	X(GONE, "gone", "it is gone from the cluster")

enum gpuq_pod_state {
#define X(sym, word, doc) GPUQ_POD_##sym,
	GPUQ_POD_STATES(X)
#undef X
		N_GPUQ_POD_STATES
};

#define GPUQ_NODE_STATES(X)                                                                        \
	X(IDLE, "idle")                                                                            \
	X(MIXED, "mixed")                                                                          \
	X(ALLOC, "alloc")                                                                          \
	X(DRAIN, "drain")                                                                          \
	X(DRAINED, "drained")                                                                      \
	X(DOWN, "down")                                                                            \
	X(RESERVED, "reserved")                                                                    \
	X(PLANNED, "planned")                                                                      \
	X(PROVISIONING, "provisioning")                                                            \
	X(SUSPECT, "suspect")                                                                      \
	X(LEAVING, "leaving")

enum gpuq_node_state {
#define X(sym, word) GPUQ_NODE_##sym,
	GPUQ_NODE_STATES(X)
#undef X
		N_GPUQ_NODE_STATES
};

/* Isolation of devices from other pods, weakest first. X(symbol, word, doc) */
#define GPUQ_ISOLATIONS(X)                                                                         \
	X(NONE, "none", "nothing: each pod keeps to its part by itself")                           \
	X(TIME_SLICE, "time-slice", "pods take turns on the device; its memory is not divided")    \
	X(MEMORY_LIMITED, "memory-limited",                                                        \
	  "a library in the pods holds each to its memory and its share of the time")              \
	X(MPS, "mps", "NVIDIA's MPS holds each pod to its memory and its threads")                 \
	X(MIG, "mig", "an instance of the device with memory and cores of its own, in hardware")   \
	X(EXCLUSIVE, "exclusive", "whole devices that no other pod has")

enum gpuq_isolation {
#define X(sym, word, doc) GPUQ_ISOLATION_##sym,
	GPUQ_ISOLATIONS(X)
#undef X
		N_GPUQ_ISOLATIONS
};

/* clang-format on */

extern const char *const gpuq_isolations[]; /* their words, ending with NULL */
const char *gpuq_isolation_word(enum gpuq_isolation i);

/* May it run on nodes that their cloud may take away at any time? */
#define GPUQ_SPOTS(X)                                                                              \
	X(AUTO, "auto", "unless it is a gang, or not preemptible")                                 \
	X(AVOID, "avoid", "never")                                                                 \
	X(ALLOW, "allow", "as on any other")                                                       \
	X(ONLY, "only", "nowhere else")

enum gpuq_spot {
#define X(sym, word, doc) GPUQ_SPOT_##sym,
	GPUQ_SPOTS(X)
#undef X
		N_GPUQ_SPOTS
};
extern const char *const gpuq_spots[]; /* their words, ending with NULL */
const char *gpuq_job_state_word(enum gpuq_job_state s); /* "PENDING" */
const char *gpuq_job_state_short(enum gpuq_job_state s); /* "PD" */
bool gpuq_job_state_ended(enum gpuq_job_state s);
int gpuq_job_state_parse(const char *word); /* long or short, any case; -1 unknown */
const char *gpuq_reason_word(enum gpuq_reason r);
const char *gpuq_reason_who(enum gpuq_reason r);
const char *gpuq_reason_doc(enum gpuq_reason r);
const char *gpuq_reason_doc_of(const char *word); /* "" for an unknown one */
const char *gpuq_unit_word(enum gpuq_unit u);
const char *gpuq_cause_word(enum gpuq_cause c);
const char *gpuq_rule_word(enum gpuq_rule r);
/* The sentence about a rule; the word itself where there is none. Either word is known. */
const char *gpuq_rule_doc(const char *word);
/* Write words of rules, joined by "+", as this build calls them, at most room bytes. */
void gpuq_rules_now(const char *stored, char *out, size_t room);
const char *gpuq_pod_state_word(enum gpuq_pod_state s);
const char *gpuq_node_state_word(enum gpuq_node_state s);

#endif
