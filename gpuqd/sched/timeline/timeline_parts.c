#include "gpuqd/sched/timeline/timeline_parts.h"

#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/reservations_end.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/timeline/timeline_int.h"

#include <string.h>

/* The timeline of single devices. Whole devices can be counted; parts of them cannot: two halves
 * may be on two devices. So where some job requests parts, a start reservation names the devices
 * that it counts on, and how much of each, as a start does. */

bool timeline_parts_asked(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (snap_group_parts(&r->groups[g]))
			return true;
	return false;
}

int64_t timeline_parts_bytes(const struct cycle *c, uint32_t device, int32_t milli,
			     const struct snap_group *g)
{
	return devices_bytes(c, device, milli, g->mig ? 0 : g->gpu_memory_bytes);
}

void timeline_parts_end(struct cycle *c, uint32_t device, int32_t milli, int64_t bytes,
			int64_t end_us)
{
	struct future *f = c->timeline->future;
	struct part_end *e;

	/* An unhealthy device frees nothing that could be allocated, and a pod without an end frees
	 * nothing in time. */
	if (!f->by_device || end_us == GPUQ_UNLIMITED || !c->s->devices[device].healthy)
		return;
	e = cycle_push(c, &f->part_ends, &f->n_part_ends, &f->room_part_ends, sizeof(*e), 1);
	if (e)
		*e = (struct part_end){
			.end_us = end_us, .device = device, .milli = milli, .bytes = bytes
		};
}

/* Count whole devices of every node, and the nodes with devices that are free in part. */
static void count(const struct cycle *c, struct amounts *out)
{
	memset(out->parted, 0, cycle_words(c) * sizeof(*out->parted));
	for (uint32_t n = 0; n < c->s->n_nodes; n++) {
		const struct snap_node *node = &c->s->nodes[n];
		uint16_t whole = 0;
		bool parted = false;

		for (uint32_t d = node->device_first; d < node->device_first + node->n_devices;
		     d++) {
			const bool is_whole = snap_is_whole(&c->s->devices[d], out->device_free[d]);

			whole += is_whole;
			parted |= !is_whole && out->device_free[d] > 0;
		}
		out->whole[n] = whole;
		if (parted)
			bits_add(out->parted, n);
	}
}

/* Add a part to a device, or take it (below 0). A device never has more than the whole of itself
 * free. */
static void add(struct amounts *out, uint32_t device, int32_t milli, int64_t bytes)
{
	const int32_t sum = out->device_free[device] + milli;

	out->device_free[device] = (int16_t)(sum < SNAP_MILLI ? sum : SNAP_MILLI);
	out->device_memory[device] = amount_sum(out->device_memory[device], bytes);
}

bool timeline_parts_bars(const struct cycle *c, const struct mark *m, uint32_t job, int64_t t)
{
	if (m->reservation == SNAP_NONE)
		return m->job != job && !c->timeline->future->over_planned;
	return m->start_us > t || !reservations_admits(c, m->reservation, job, t);
}

void timeline_parts_free_at(struct cycle *c, uint32_t job, int64_t t, bool amounts,
			    struct amounts *out)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;

	if (!f->by_device)
		return;
	memcpy(out->device_free, avail->device_free, c->s->n_devices * sizeof(*out->device_free));
	memcpy(out->device_memory, avail->device_memory,
	       c->s->n_devices * sizeof(*out->device_memory));
	/* Amounts taken come first: no sum exceeds what the device has. */
	for (int taken = 1; taken >= 0; taken--)
		for (uint32_t i = 0; i < f->n_part_ends; i++) {
			const struct part_end *e = &f->part_ends[i];

			if (e->end_us <= t && (e->milli < 0) == taken)
				add(out, e->device, e->milli, e->bytes);
		}
	for (uint32_t i = 0; i < f->n_marks; i++) {
		const struct mark *m = &f->marks[i];

		/* A hold covers [start, end). */
		if (m->start_us <= t && m->end_us > t && timeline_parts_bars(c, m, job, t) &&
		    (amounts || m->reservation == SNAP_NONE))
			add(out, m->device, -m->milli, -m->bytes);
	}
	count(c, out);
}

void timeline_parts_spare(const struct cycle *c, const struct mark *m, uint32_t job, int64_t t,
			  int32_t *milli, int64_t *bytes)
{
	const struct future *f = c->timeline->future;

	*milli = m->left;
	*bytes = m->bytes_left;
	for (uint32_t i = 0; c->s->n_reservations > 0 && i < f->n_marks; i++) {
		const struct mark *r = &f->marks[i];

		/* As in timeline_spare(): only reservations that cover the beginning of the hold,
		 * and that the job may not use. */
		if (r == m || r->reservation == SNAP_NONE || r->device != m->device ||
		    r->start_us > m->start_us || r->end_us <= m->start_us ||
		    !timeline_parts_bars(c, r, job, t))
			continue;
		*milli -= r->milli;
		*bytes -= r->bytes;
	}
}

const struct mark *timeline_parts_clash(const struct cycle *c, uint32_t job, uint32_t device,
					int32_t milli, int64_t bytes)
{
	const struct future *f = c->timeline->future;
	const int64_t now = c->s->config.now_us;
	const struct mark *first = NULL;

	for (uint32_t i = 0; i < f->n_marks; i++) {
		const struct mark *m = &f->marks[i];
		int32_t left;
		int64_t bytes_left;

		/* A later hold cannot be the first clash: its spare capacity need not be computed. */
		if (m->device != device || !timeline_parts_bars(c, m, job, now) ||
		    (first && first->start_us <= m->start_us))
			continue;
		timeline_parts_spare(c, m, job, now, &left, &bytes_left);
		if (left < milli || bytes_left < bytes)
			first = m;
	}
	return first;
}

/* Places name devices by number on their node, holds by number over all nodes. */
void timeline_parts_at_hand(const struct cycle *c, const struct snap_request *r, uint32_t device,
			    int32_t *milli, int64_t *bytes)
{
	*milli = 0;
	*bytes = 0;
	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const struct place *p = &c->places.pods[i];

		for (uint32_t d = 0; d < p->n_devices; d++)
			if (c->s->nodes[p->node].device_first +
				    c->places.devices[p->device_first + d] ==
			    device) {
				*milli += p->milli;
				*bytes = amount_sum(*bytes,
						    timeline_parts_bytes(c, device, p->milli,
									 &r->groups[p->group]));
			}
	}
}

void timeline_parts_held(const struct cycle *c, uint32_t job, uint32_t device, int32_t *milli,
			 int64_t *bytes)
{
	const struct snap_job *j = &c->s->jobs[job];

	*milli = 0;
	*bytes = 0;
	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++) {
		const struct snap_alloc *a = &c->s->allocs[i];

		for (uint32_t d = 0; d < a->n_devices; d++)
			if (c->s->nodes[a->node].device_first + a->devices[d] == device) {
				*milli += a->milli;
				*bytes = amount_sum(*bytes,
						    timeline_parts_bytes(c, device, a->milli,
									 snap_group_of(c->s, a)));
			}
	}
}

void timeline_parts_least(struct cycle *c, uint32_t job, int64_t t, int64_t end,
			  struct amounts *least)
{
	const struct future *f = c->timeline->future;
	bool any = false;

	for (uint32_t i = 0; f->by_device && i < f->n_marks; i++) {
		const struct mark *m = &f->marks[i];
		int32_t milli;
		int64_t bytes;

		/* Holds that have begun by t are subtracted already by timeline_parts_free_at(). */
		if (m->start_us <= t || m->start_us >= end || !timeline_parts_bars(c, m, job, t))
			continue;
		timeline_parts_spare(c, m, job, t, &milli, &bytes);
		if (least->device_free[m->device] > milli)
			least->device_free[m->device] = (int16_t)milli;
		if (least->device_memory[m->device] > bytes)
			least->device_memory[m->device] = bytes;
		any = true;
	}
	if (any)
		count(c, least);
}

void timeline_parts_hold(struct cycle *c, const struct mark *m)
{
	struct future *f = c->timeline->future;
	struct mark *to;

	if (!f->by_device)
		return;
	to = cycle_push(c, &f->marks, &f->n_marks, &f->room_marks, sizeof(*to), 1);
	if (to)
		*to = *m;
}

void timeline_parts_spend(struct cycle *c, uint32_t device, int64_t start, int64_t end,
			  int32_t milli, int64_t bytes, int sign)
{
	struct future *f = c->timeline->future;

	for (uint32_t i = 0; f->by_device && i < f->n_marks; i++) {
		struct mark *m = &f->marks[i];

		if (m->device != device || m->start_us < start || m->start_us >= end)
			continue;
		/* Only holds that begin while the part is taken have less to spare. */
		m->left -= sign * milli;
		m->bytes_left = amount_sum(m->bytes_left, -sign * bytes);
	}
}

void timeline_parts_unplan(struct cycle *c, uint32_t job)
{
	struct future *f = c->timeline->future;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n_marks; i++) {
		const struct mark m = f->marks[i];

		/* First return to other holds what these took from their spare capacity, then
		 * remove these. */
		if (m.reservation == SNAP_NONE && m.job == job)
			timeline_parts_spend(c, m.device, m.start_us, m.end_us, m.milli, m.bytes,
					     -1);
	}
	for (uint32_t i = 0; i < f->n_marks; i++)
		if (f->marks[i].reservation != SNAP_NONE || f->marks[i].job != job)
			f->marks[kept++] = f->marks[i];
	f->n_marks = kept;
}

void timeline_parts_used(struct cycle *c, uint32_t reservation, uint32_t node, uint32_t whole)
{
	struct future *f = c->timeline->future;

	for (uint32_t i = f->n_marks; whole > 0 && i-- > 0;)
		if (f->marks[i].reservation == reservation && f->marks[i].node == node) {
			f->marks[i] = f->marks[--f->n_marks];
			whole--;
		}
}

void timeline_parts_keep(struct cycle *c, uint32_t reservation, uint32_t node, int64_t start,
			 uint32_t whole)
{
	const struct future *f = c->timeline->future;
	const struct snap_node *n = &c->s->nodes[node];

	/* From the highest device down: jobs are given the lowest free ones, so the two seldom
	 * meet. */
	for (uint32_t d = n->device_first + n->n_devices; f->by_device && d-- > n->device_first;) {
		const int64_t bytes = c->s->devices[d].memory_bytes;

		if (whole == 0)
			return;
		if (!snap_is_whole(&c->s->devices[d], f->at.device_free[d]))
			continue;
		whole--;
		timeline_parts_hold(
			c, &(struct mark){ .job = SNAP_NONE,
					   .reservation = reservation,
					   .node = node,
					   .device = d,
					   .start_us = start,
					   .end_us = c->s->reservations[reservation].end_us,
					   .milli = SNAP_MILLI,
					   .bytes = bytes,
					   .left = f->least.device_free[d] - SNAP_MILLI,
					   .bytes_left = f->least.device_memory[d] - bytes });
	}
}
