/* timeline.h - what the cluster will look like, as far as it is known
 *
 * Owns     when what is held now is given back; planned starts and calendar slices, and
 *          what nodes have to spare when those begin.
 * Touches  memory only.
 * Used by  timeline*.c and reservations.c only; the cycle sees what cycle.h declares.
 *
 * Planned starts name nodes and counts of devices, never devices: as long as the count
 * holds at every moment, whoever starts finds some that are free. What a node has free
 * grows between planned starts and is least where one begins: so these are the moments
 * that are looked at. Spans of time are half open: [start, end).
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_H

#include "gpuqd/sched/place/pack.h"

/* What is past its time, or was told to leave, is taken to be gone then. */
#define FUTURE_OVERRUN_US (60 * GPUQ_US_PER_S)

/* What a node gets back at some moment. Amounts may be below 0: given away then. */
struct release {
	int64_t end_us;
	uint32_t node;
	int32_t whole, pods, closers; /* devices; pods; pods of jobs that are alone there */
	int64_t cpu, memory;
};

/* A hold on one node in time to come, and what the node has to spare when it begins. */
struct booked {
	uint32_t node;
	uint32_t job; /* planned start of a job; SNAP_NONE = of a reservation */
	uint32_t reservation; /* SNAP_NONE = of a job */
	int64_t start_us, end_us;
	bool alone; /* nobody else may be there */
	struct need need; /* of all its pods there */
	/* To spare; what amounts of the calendar keep there is not taken off: it depends on
	 * who asks, see timeline_spare(). */
	int64_t whole, cpu, memory, pods;
};

/* What a hold leaves to a job; may be below 0. */
struct spare {
	int64_t whole, cpu, memory;
};

/* Licenses that a running job gives back at some moment. */
struct license_end {
	int64_t end_us;
	uint32_t license;
	int64_t count;
};

/* A job that has a planned start. */
struct planned {
	uint32_t job, flavor;
	int64_t start_us;
	uint32_t place_first, n_places; /* into future.places */
	bool starving;
};

/* Node amounts at some moment; stands in for the cycle's own while planning. */
struct amounts {
	int64_t *cpu, *memory, *pods;
	uint16_t *whole, *tenants;
	uint64_t *usable, *vacant;
	struct bucket *buckets;
	/* By device, where they matter (future.by_device); what follows from them. */
	int16_t *device_free;
	int64_t *device_memory;
	uint64_t *parted;
	uint16_t *withheld; /* nothing */
	int32_t *migs; /* as cycle.mig_free, where they matter (future.by_profile) */
};

/* A part of a device, or all of it, that is given back at some moment; below 0: taken. */
struct part_end {
	int64_t end_us, bytes;
	uint32_t device;
	int32_t milli;
};

/* A part of a device, or all of it, that a hold in time to come takes, and what the device
 * has to spare when it begins. */
struct mark {
	uint32_t job, reservation; /* as of its hold */
	uint32_t node, device; /* device: a number over all nodes */
	int64_t start_us, end_us;
	int32_t milli;
	int64_t bytes;
	int32_t left; /* as booked.whole: amounts of the calendar are not taken off */
	int64_t bytes_left;
};

/* MIG instances of one profile on one node, which is a slot of cycle.mig_free: given back at
 * some moment (n < 0: taken); held by a planned start, and to spare when that begins. */
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
	bool stale; /* what runs changed in another way than by a start */
	int64_t *until; /* by device: when it is free; 0 = now, GPUQ_UNLIMITED = nobody knows */
	uint16_t *whole_now; /* by node: devices with until 0 */
	uint16_t *seated, *closers; /* by node: pods now and promised; those of jobs alone there */
	bool any_closer;
	uint16_t *closed; /* scratch, by node */
	struct amounts at, least; /* scratch: at one moment, and the least of several */

	/* devices one by one, when some job asks for parts of them: timeline_parts.c */
	bool by_device;
	struct part_end *part_ends;
	uint32_t n_part_ends, room_part_ends;
	struct mark *marks;
	uint32_t n_marks, room_marks;

	/* MIG instances, when some job asks for them: timeline_instances.c */
	bool by_profile;
	struct instance_end *instance_ends;
	uint32_t n_instance_ends, room_instance_ends;
	struct instance_hold *instances;
	uint32_t n_instances, room_instances;

	/* licenses: timeline_licenses.c */
	struct license_end *license_ends;
	uint32_t n_license_ends, room_license_ends;

	/* what is planned: timeline_plan.c */
	struct booked *booked;
	uint32_t n_booked, room_booked;
	struct planned *planned; /* in the order in which they were planned */
	uint32_t n_planned, room_planned;
	struct place *places;
	uint32_t n_places, room_places;
	uint32_t *n_of_flavor; /* planned starts by flavor; [n_flavors] = without devices */
	/* By flavor, as above: starving jobs that were started or planned first, and what they
	 * hold of it; behind the flavors the cpu and memory of those without devices. */
	uint32_t *n_starving;
	int64_t *starving_held;
	uint32_t n_tests, n_tries; /* jobs that asked for one; moments that were tried */
	bool told_full; /* that one of these is as many as may be */
	uint16_t *rooms; /* scratch: whole devices by node as time goes on */

	/* starting beside it: timeline_pack.c */
	uint32_t n_displacing; /* timeline_displace.c: attempts in this cycle */
	bool over_planned; /* planned starts bar nothing: those in the way are to be displaced */
	uint64_t *barred; /* scratch: nodes the calendar keeps from the job at hand */
	int64_t yield_us; /* of the places at hand: when they have to be left again; 0 = never */
	int64_t given_us; /* ...and for how long they are, when that was cut; 0 = it was not */

	/* reservations.c */
	uint64_t **slices; /* by reservation: its nodes; NULL = an amount anywhere */
};

/* How long a job that starts at t may run: its walltime, or what its deadline leaves of it
 * where it can do with less. */
int64_t timeline_walltime(const struct cycle *c, uint32_t job, int64_t t);
/* When a job that starts at t is gone: that and grace. */
int64_t timeline_end(const struct cycle *c, uint32_t job, int64_t t);

/* The timeline as it follows from the snapshot and the actions so far; made when first
 * asked, and again after it went stale. False and failed without memory. */
bool timeline_look_ahead(struct cycle *c);

/* Take (sign 1) or give back (-1) what stands on a node during [start, end) from what
 * others have to spare when they begin meanwhile. */
void timeline_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
		    const struct need *n, int sign);

/* The least that the job can do with. */
int64_t timeline_least_us(const struct snap_job *j);
/* A job was started: note when it ends. */
void timeline_started(struct cycle *c, const struct plan_action *a);
/* What runs or is promised was changed otherwise, by actions that stand in the plan: it
 * is looked at again, and planned starts that have become wrong are planned anew. */
void timeline_changed(struct cycle *c);
/* Before anybody is taken off his nodes in thought: the look is made again now, if it has
 * to be, as it is to show what is so. */
void timeline_refresh(struct cycle *c);
/* As nodes_shift(), of a pod that runs: planned starts that begin before its end may spare as
 * much more, or less again. */
void timeline_shift(struct cycle *c, const struct snap_alloc *a, int sign);

#endif
