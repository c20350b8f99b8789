#include "gpuqd/state/cuts/foreign_part.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/spec/resource.h"

bool foreign_by_resource(const struct node *n)
{
	return n->fact.replicas > 1 || (n->fact.device && *n->fact.device &&
					gpuq_resource_kind(n->fact.device) != GPUQ_RESOURCE_DEVICE);
}

int64_t foreign_milli(const struct node *n, const struct foreign *f)
{
	const int64_t r = n->fact.replicas > 1 ? n->fact.replicas : 1;

	return gpuq_amounts_get(f->resources, f->n_resources, n->fact.device) * (1000 / r);
}

int64_t foreign_gpus(const struct node *n, const struct foreign *f)
{
	const char *device = n->fact.device;
	const int64_t own =
		device && *device ? gpuq_amounts_get(f->resources, f->n_resources, device) : 0;
	bool other = false;

	if (!device || !*device || n->told.n_resources == n->fact.n_resources)
		return f->gpus_milli;
	for (uint32_t i = 0; i < f->n_resources; i++)
		other |= strcmp(f->resources[i].name, device) != 0 &&
			 gpuq_amounts_get(n->told.resources, n->told.n_resources,
					  f->resources[i].name) > 0 &&
			 gpuq_amounts_get(n->fact.resources, n->fact.n_resources,
					  f->resources[i].name) == 0;
	return other ? own * 1000 : f->gpus_milli;
}

struct foreign_use foreign_part(const struct node *n, const struct foreign *f)
{
	const int64_t least = n->fact.slots ? (1000 + n->fact.slots - 1) / n->fact.slots : 0;
	const int64_t told = f->gpus_milli / (f->n_uuids ? f->n_uuids : f->n_devices);
	const int64_t milli = told < least ? least : told;
	const int64_t whole = n->n_devices ? n->devices[0].memory_mib : 0;
	const int64_t mib = f->device_bytes > 0 ? f->device_bytes >> 20 : whole * milli / 1000;
	int64_t memory = milli;

	if (f->device_bytes > 0 && whole > 0)
		memory = mib < whole ? (mib * 1000 + whole - 1) / whole : 1000;
	return (struct foreign_use){ (uint32_t)(memory > milli ? memory : milli), (uint32_t)milli,
				     mib << 20 };
}

uint32_t foreign_device(const struct node *n, const char *uuid)
{
	uint32_t i = 0;

	while (i < n->n_devices && strcmp(n->devices[i].uuid, uuid) != 0)
		i++;
	return i;
}

/* Return the device of that UUID; NULL: there is none, and none is to be made. */
static struct foreign_stranger *stranger(struct node *n, const char *uuid, bool make)
{
	uint32_t i = 0;

	while (i < n->n_strangers && strcmp(n->strangers[i].uuid, uuid) != 0)
		i++;
	if (i < n->n_strangers)
		return &n->strangers[i];
	if (!make)
		return NULL;
	n->strangers = realloc(n->strangers, (i + 1) * sizeof(*n->strangers));
	if (!n->strangers)
		abort();
	n->strangers[n->n_strangers++] = (struct foreign_stranger){ .uuid = uuid };
	return &n->strangers[i];
}

static void drop_unused(struct node *n, struct foreign_stranger *s)
{
	const size_t at = (size_t)(s - n->strangers);

	if (s->milli > 0 || s->n_held > 0)
		return;
	n->n_strangers--;
	memmove(s, s + 1, (n->n_strangers - at) * sizeof(*s));
}

void foreign_stranger_add(struct node *n, const char *uuid, int64_t milli)
{
	struct foreign_stranger *s = stranger(n, uuid, milli > 0);

	if (!s)
		return;
	s->milli += milli;
	if (s->n_held == 0)
		n->foreign_gpus_milli += milli;
	drop_unused(n, s);
}

void foreign_stranger_hold(struct node *n, const char *uuid, int sign)
{
	struct foreign_stranger *s = stranger(n, uuid, sign > 0);

	if (!s || (sign < 0 && s->n_held == 0))
		return;
	if (sign > 0 ? s->n_held++ == 0 : --s->n_held == 0)
		n->foreign_gpus_milli -= sign * s->milli;
	drop_unused(n, s);
}

/* Return what is counted of it. */
static int64_t counted(const struct foreign_stranger *s)
{
	return s->n_held ? 0 : s->milli;
}

int64_t foreign_rest(const struct node *n)
{
	int64_t rest = n->foreign_gpus_milli;

	for (uint32_t i = 0; i < n->n_strangers; i++)
		rest -= counted(&n->strangers[i]);
	return rest > 0 ? rest : 0;
}

int64_t foreign_stranger_milli(const struct node *n, uint32_t at, int64_t *rest)
{
	const int64_t milli = counted(&n->strangers[at]);
	const int64_t room = (milli + 999) / 1000 * 1000 - milli;
	const int64_t more = *rest < room ? *rest : room;

	*rest -= more;
	return milli + more;
}

int64_t foreign_unknown(const struct node *n)
{
	int64_t rest = foreign_rest(n), count = 0;

	for (uint32_t i = 0; i < n->n_strangers; i++)
		count += (foreign_stranger_milli(n, i, &rest) + 999) / 1000;
	return count + (rest + 999) / 1000;
}

uint32_t foreign_instances(const struct node *n, const struct foreign *f)
{
	const int64_t replicas = n->fact.replicas > 1 ? n->fact.replicas : 1;
	int64_t held;

	if (n->n_devices > 0 || n->fact.n_mig == 0 || !n->fact.device || !*n->fact.device)
		return 0;
	held = gpuq_amounts_get(f->resources, f->n_resources, n->fact.device);
	if (held == 0)
		held = f->gpus_milli / 1000;
	held = (held + replicas - 1) / replicas;
	return held < UINT16_MAX ? (uint32_t)held : UINT16_MAX;
}
