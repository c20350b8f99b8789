/* timeline_int.h - the future state of the cluster, as the files of timeline/ see it
 *
 * Owns     the tables' shape; nominated.c makes struct timeline, timeline.c the future in it.
 * Touches  memory only.
 * Used by  the files of timeline/ alone. */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_INT_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_INT_H

#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/timeline/timeline.h"

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
	uint32_t node; /* where */
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
	int64_t whole, cpu, memory; /* whole: devices */
};

/* Licenses that a running job releases at some moment. */
struct license_end {
	int64_t end_us; /* when the job ends */
	uint32_t license;
	int64_t count; /* that it holds */
};

/* A job that has a start reservation. */
struct planned {
	uint32_t job, flavor;
	int64_t start_us;
	uint32_t place_first, n_places; /* into future.places */
	bool starving;
};

/* A part of a device, or all of it, that is released at some moment; below 0: taken. */
struct part_end {
	int64_t end_us, bytes; /* bytes: of the device's memory */
	uint32_t device; /* a number over all nodes */
	int32_t milli;
};

/* A part of a device, or all of it, that a future hold takes, and what the device has to spare when
 * it begins. */
struct mark {
	uint32_t job, reservation; /* as in its hold */
	uint32_t node, device; /* device: a number over all nodes */
	int64_t start_us, end_us;
	int32_t milli; /* of the device */
	int64_t bytes; /* of its memory */
	int32_t left; /* as booked.whole: amounts of reservations are not subtracted */
	int64_t bytes_left;
};

/* A countable resource on one node, which is a slot of amounts.extra_free (MIG instances of a
 * profile are one): released at some moment (n < 0: taken); held by a start reservation, and to
 * spare when that begins. */
struct extra_end {
	int64_t end_us;
	size_t slot;
	int64_t n;
};

struct extra_hold {
	uint32_t job;
	size_t slot;
	int64_t start_us, end_us;
	int64_t n, left; /* taken; to spare when it begins */
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
	struct mark *marks; /* of start reservations and reservations */
	uint32_t n_marks, room_marks;

	/* countable resources, when some job requests them: timeline_extras.c */
	bool by_extra;
	struct extra_end *extra_ends;
	uint32_t n_extra_ends, room_extra_ends;
	struct extra_hold *extra_holds;
	uint32_t n_extra_holds, room_extra_holds;

	/* licenses: timeline_licenses.c */
	struct license_end *license_ends;
	uint32_t n_license_ends, room_license_ends;

	/* start reservations: timeline_plan.c */
	struct booked *booked;
	uint32_t n_booked, room_booked;
	struct planned *planned; /* in the order in which they were planned */
	uint32_t n_planned, room_planned;
	struct place *places; /* of all start reservations */
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
	uint32_t within; /* over_planned: the reservation that the job starts in, or SNAP_NONE */
	uint64_t *barred; /* scratch: nodes that reservations keep from the current job */
	int64_t yield_us; /* of the current places: when they must be yielded; 0 = never */
	int64_t given_us; /* ...and the time limit there, when it was cut; 0 = it was not */

	/* reservations.c */
	uint64_t **slices; /* by reservation: its nodes; NULL = an amount anywhere */
	struct job_end *job_ends; /* by job; NULL = none; reservations_end.c */
};

struct timeline {
	/* nominated.c. By flavor: thousandths of devices free once everything that is ending has
	 * ended, and after how many actions they were counted (plus one; 0 = never). */
	int64_t *free_milli;
	uint32_t *free_counted;
	struct later *later; /* NULL until something is ending or nominated */

	uint32_t idle; /* actions + 1 when no running work was seen to end; 0 = never */
	bool any_starving; /* some job has been pending for so long that it may be starving */
	struct future *future; /* NULL until a job is blocked */
};

#endif
