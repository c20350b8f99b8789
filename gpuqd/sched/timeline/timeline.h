/* timeline.h - the future state of the cluster, as far as it is known
 *
 * Owns     when current holdings are released; start reservations and reservations, and the spare
 *          capacity of nodes when those begin.
 * Touches  memory only.
 * Used by  timeline*.c and reservations.c only; the cycle sees what cycle.h declares.
 *
 * Start reservations name nodes and counts of devices, never devices: as long as the count holds at
 * every moment, the job that starts finds free ones. The free capacity of a node grows between
 * start reservations and is least where one begins: so these are the moments that are evaluated.
 * Spans of time are half open: [start, end). */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_H

#include "gpuqd/sched/place/pack.h"

/* Pods that are past their time, or were signalled, are assumed to be gone then. */
#define FUTURE_OVERRUN_US (60 * GPUQ_US_PER_S)

/* The amounts that a node gets back at some moment. Amounts may be below 0: taken then. */
struct release {
	int64_t end_us;
	uint32_t node;
	int32_t whole, pods, closers; /* devices; pods; pods of exclusive jobs there */
	int64_t cpu, memory;
};

/* A future hold on one node, and the node's spare capacity when it begins. */
struct booked {
	uint32_t node;
	uint32_t job; /* start reservation of a job; SNAP_NONE = of a reservation */
	uint32_t reservation; /* SNAP_NONE = of a job */
	int64_t start_us, end_us;
	bool alone; /* no other job may be there */
	struct need need; /* of all its pods there */
	/* Spare amounts; those that reservations of amounts keep there are not subtracted: they
	 * depend on the job in question, see timeline_spare(). */
	int64_t whole, cpu, memory, pods;
};

/* The amounts that a hold leaves to a job; may be below 0. */
struct spare {
	int64_t whole, cpu, memory;
};

/* Licenses that a running job releases at some moment. */
struct license_end {
	int64_t end_us;
	uint32_t license;
	int64_t count;
};

/* A job that has a start reservation. */
struct planned {
	uint32_t job, flavor;
	int64_t start_us;
	uint32_t place_first, n_places; /* into future.places */
	bool starving;
};

/* Node amounts at some moment; replaces the cycle's own while planning. */
struct amounts {
	int64_t *cpu, *memory, *pods;
	uint16_t *whole, *tenants;
	uint64_t *usable, *vacant;
	struct bucket *buckets;
	/* By device, where they matter (future.by_device); and values derived from them. */
	int16_t *device_free;
	int64_t *device_memory;
	uint64_t *parted;
	uint16_t *withheld; /* all zero */
	int32_t *migs; /* as cycle.mig_free, where they matter (future.by_profile) */
};

/* A part of a device, or all of it, that is released at some moment; below 0: taken. */
struct part_end {
	int64_t end_us, bytes;
	uint32_t device;
	int32_t milli;
};

/* A part of a device, or all of it, that a future hold takes, and what the device has to spare when
 * it begins. */
struct mark {
	uint32_t job, reservation; /* as in its hold */
	uint32_t node, device; /* device: a number over all nodes */
	int64_t start_us, end_us;
	int32_t milli;
	int64_t bytes;
	int32_t left; /* as booked.whole: amounts of reservations are not subtracted */
	int64_t bytes_left;
};

/* MIG instances of one profile on one node, which is a slot of cycle.mig_free: released at some
 * moment (n < 0: taken); held by a start reservation, and to spare when that begins. */
struct instance_end {
	int64_t end_us;
	uint32_t slot;
	int32_t n;
};

struct instance_hold {
	uint32_t job, slot;
	int64_t start_us, end_us;
	int32_t n, left;
};

struct future {
	/* timeline: timeline.c, timeline_free.c */
	struct release *releases; /* by end */
	uint32_t n_releases, room_releases;
	bool sorted;
	bool stale; /* running work changed in another way than by a start */
	int64_t *until; /* by device: when it is free; 0 = now, GPUQ_UNLIMITED = not known */
	uint16_t *whole_now; /* by node: devices with until 0 */
	uint16_t *seated, *closers; /* by node: pods now and nominated; those of exclusive jobs
				     * there */
	bool any_closer;
	uint16_t *closed; /* scratch, by node */
	struct amounts at, least; /* scratch: at one moment, and the least of several */

	/* single devices, when some job requests parts of them: timeline_parts.c */
	bool by_device;
	struct part_end *part_ends;
	uint32_t n_part_ends, room_part_ends;
	struct mark *marks;
	uint32_t n_marks, room_marks;

	/* MIG instances, when some job requests them: timeline_instances.c */
	bool by_profile;
	struct instance_end *instance_ends;
	uint32_t n_instance_ends, room_instance_ends;
	struct instance_hold *instances;
	uint32_t n_instances, room_instances;

	/* licenses: timeline_licenses.c */
	struct license_end *license_ends;
	uint32_t n_license_ends, room_license_ends;

	/* start reservations: timeline_plan.c */
	struct booked *booked;
	uint32_t n_booked, room_booked;
	struct planned *planned; /* in the order in which they were planned */
	uint32_t n_planned, room_planned;
	struct place *places;
	uint32_t n_places, room_places;
	uint32_t *n_of_flavor; /* start reservations by flavor; [n_flavors] = without devices */
	/* By flavor, as above: starving jobs that were started or planned first, and how much of it
	 * they hold; after the flavors the cpu and memory of those without devices. */
	uint32_t *n_starving;
	int64_t *starving_held;
	uint32_t n_tests, n_tries; /* jobs that requested one; moments that were tried */
	bool told_full; /* that one of these has reached its bound was reported */
	uint16_t *rooms; /* scratch: whole devices by node over time */

	/* starting beside them: timeline_pack.c */
	uint32_t n_displacing; /* timeline_displace.c: attempts in this cycle */
	bool over_planned; /* start reservations do not bar: those in the way are to be displaced */
	uint64_t *barred; /* scratch: nodes that reservations keep from the current job */
	int64_t yield_us; /* of the current places: when they must be yielded; 0 = never */
	int64_t given_us; /* ...and the time limit there, when it was cut; 0 = it was not */

	/* reservations.c */
	uint64_t **slices; /* by reservation: its nodes; NULL = an amount anywhere */
};

/* Return how long a job that starts at t may run: its time limit, or what its deadline leaves of it
 * where the job allows less. */
int64_t timeline_walltime(const struct cycle *c, uint32_t job, int64_t t);
/* Return when a job that starts at t is gone: that and its grace period. */
int64_t timeline_end(const struct cycle *c, uint32_t job, int64_t t);

/* Make the timeline from the snapshot and the actions so far; made on first use, and again after it
 * became stale. False, and `failed` is set, without memory. */
bool timeline_look_ahead(struct cycle *c);

/* Take (sign 1) or return (-1) what is on a node during [start, end) from the spare amounts of
 * holds that begin meanwhile. */
void timeline_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
		    const struct need *n, int sign);

/* Return the shortest time limit that the job allows. */
int64_t timeline_least_us(const struct snap_job *j);
/* Note when a job that was started ends. */
void timeline_started(struct cycle *c, const struct plan_action *a);
/* Note that running or nominated work was changed otherwise, by actions in the plan: the timeline
 * is made again, and start reservations that have become wrong are planned anew. */
void timeline_changed(struct cycle *c);
/* Make the timeline again if needed, before a job is tentatively removed from its nodes, as the
 * timeline is to show the actual state. */
void timeline_refresh(struct cycle *c);
/* As nodes_shift(), for a running pod: holds that begin before its end have as much more to spare,
 * or less again. */
void timeline_shift(struct cycle *c, const struct snap_alloc *a, int sign);

#endif
