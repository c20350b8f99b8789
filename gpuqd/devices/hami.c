/* HAMi: its plugin registers the cards of a node, each of which several pods share by memory and cores,
 * several cards to one pod. It allocates what is written on the pod that the node's lock names, so one pod
 * is under way at a time, created while gpuqd holds that lock. Where HAMi's own scheduler may allocate the
 * same cards, gpuqd stays away: a pool has to name the backend. */
#include "gpuqd/devices/hami.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend_int.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"

#define CORES 100 /* of a device */
#define GPUMEM "nvidia.com/gpumem"
#define GPUCORES "nvidia.com/gpucores"
#define FIELDS 4 /* of a device: UUID, type, MiB, cores */

static int64_t number(const char *text, size_t n)
{
	int64_t v = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' || v > INT64_C(100000000))
			return -1;
		v = v * 10 + (text[i] - '0');
	}
	return n ? v : -1;
}

/* Read one device of n bytes. False: it is none. */
static bool read_device(const char *text, size_t n, struct gpuq_arena *a, struct hami_devices *out,
			bool *no_memory)
{
	const char *at[FIELDS], *end = text + n;
	size_t len[FIELDS];
	int64_t mib, cores;

	for (size_t i = 0; i < FIELDS; i++) {
		const char *comma = memchr(text, ',', (size_t)(end - text));

		if (!comma != (i == FIELDS - 1))
			return false;
		at[i] = text;
		len[i] = (size_t)((comma ? comma : end) - text);
		text = comma ? comma + 1 : end;
	}
	mib = number(at[2], len[2]);
	cores = number(at[3], len[3]);
	if (len[0] == 0 || mib < 0 || cores < 0 || cores > CORES)
		return false;
	out->mib = mib > out->mib ? mib : out->mib;
	out->cores = cores > out->cores ? cores : out->cores;
	for (size_t i = 0; i < out->n; i++)
		if (strlen(out->uuids[i]) == len[0] && strncmp(out->uuids[i], at[0], len[0]) == 0)
			return true;
	out->uuids[out->n] = gpuq_arena_strndup(a, at[0], len[0]);
	*no_memory = !out->uuids[out->n++];
	return true;
}

int hami_devices_read(const char *text, struct gpuq_arena *a, struct hami_devices *out)
{
	struct hami_devices got = { 0 };
	bool no_memory = false;
	size_t most = 0;

	*out = got;
	for (const char *p = text; *p; p++)
		most += *p == ':';
	if (most == 0 || most > GPUQ_GPUS_PER_POD_MAX)
		return 0;
	got.uuids = gpuq_arena_calloc(a, most, sizeof(*got.uuids));
	if (!got.uuids)
		return GPUQ_ENOMEM;
	while (*text) {
		const size_t n = strcspn(text, ":;");

		if (text[n] == ':' ? !read_device(text, n, a, &got, &no_memory) : n > 0)
			return 0;
		if (no_memory)
			return GPUQ_ENOMEM;
		text += n + (text[n] != '\0');
	}
	*out = got;
	return 0;
}

static int validate(const struct gpuq_group *g, const struct backend_shape *s, struct gpuq_err *err)
{
	return backend_check_memory(g, s, err);
}

/* Return the text for a pod: devices of the container at ask->at, which comes after the init containers. */
static const char *to_allocate(const struct backend_ask *ask, int64_t mib, int64_t cores,
			       struct gpuq_arena *a)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *text;

	for (size_t i = 0; i < ask->n_init + ask->n_containers; i++) {
		for (size_t d = 0; i == ask->n_init + ask->at && d < ask->n_devices; d++)
			gpuq_buf_printf(&b, "%s,NVIDIA,%" PRId64 ",%" PRId64 ":", ask->uuids[d],
					mib, cores);
		gpuq_buf_adds(&b, ";");
	}
	text = b.failed ? NULL : gpuq_arena_strdup(a, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

static int place(const struct backend *b, const struct backend_ask *ask, struct gpuq_arena *a,
		 struct backend_place *out, struct gpuq_err *err)
{
	const struct gpuq_group *g = ask->group;
	const bool part = backend_shares(g);
	const int64_t mib = part ? backend_units_of(g->gpu_memory_bytes, ask->milli,
						    ask->device_mib, b->unit_mib)
				 : ask->device_mib;
	const int64_t cores = !part                      ? CORES
			      : g->gpu_cores > 0         ? g->gpu_cores
			      : g->gpus_milli % 1000 > 0 ? ask->milli / 10
							 : 0; /* not limited */
	const char *text;

	out->units = UNSERVED_LOCK;
	if (ask->device_mib <= 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the node does not report the memory of its devices");
	if (mib > ask->device_mib)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "it requests %" PRId64 " MiB of a device, which has %" PRId64, mib,
				 ask->device_mib);
	for (size_t i = 0; i < ask->n_devices; i++)
		if (!ask->uuids || !ask->uuids[i] || !*ask->uuids[i])
			return gpuq_fail(err, GPUQ_EINVAL,
					 "the node does not report the UUID of device %d",
					 ask->devices[i]);
	out->limits[out->n_limits++] =
		(struct gpuq_amount){ ask->resource, (int64_t)ask->n_devices };
	out->limits[out->n_limits++] = (struct gpuq_amount){ GPUMEM, mib };
	if (cores > 0)
		out->limits[out->n_limits++] = (struct gpuq_amount){ GPUCORES, cores };
	text = to_allocate(ask, mib, cores, a);
	if (!text || backend_note_number(out, a, HAMI_TIME, ask->now_us / 1000000) != 0 ||
	    backend_note_number(out, a, HAMI_BIND_TIME, ask->now_us / 1000000) != 0)
		return gpuq_no_memory(err);
	backend_note_word(out, HAMI_NODE, ask->node);
	backend_note_word(out, HAMI_TO_ALLOCATE, text);
	backend_note_word(out, HAMI_ALLOCATED, text);
	backend_note_word(out, HAMI_PHASE, "allocating");
	out->label = (struct backend_word){ HAMI_NODE, ask->node };
	return 0;
}

static int observe(const struct gpuq_strmap *notes, const struct gpuq_amount *asks, size_t n_asks,
		   struct gpuq_arena *a, struct backend_seen *out)
{
	const char *phase = gpuq_strmap_text(notes, HAMI_PHASE);
	struct hami_devices d;
	int rc;

	(void)asks;
	(void)n_asks;
	if (!*gpuq_strmap_text(notes, HAMI_NODE))
		return 0;
	out->unserved = strcmp(phase, "success") != 0 ? UNSERVED_LOCK : 0;
	out->failed = strcmp(phase, "failed") == 0;
	rc = hami_devices_read(gpuq_strmap_text(notes, HAMI_ALLOCATED), a, &d);
	if (rc != 0 || d.n == 0)
		return rc;
	out->uuids = (struct gpuq_strlist){ d.uuids, d.n };
	/* Cores that are not limited take some all the same: see the pods of a device. */
	out->gpus_milli = (int64_t)d.n * (d.cores > 0 ? d.cores * 10 : 1);
	out->memory_bytes = d.mib * MIB;
	return 0;
}

const struct backend backend_hami = { .word = "hami",
				      .pool = "hami",
				      .title = "HAMi",
				      .closed = true,
				      .parts = true,
				      .decided = true,
				      .turn = TURN_LOCK,
				      .unit_mib = 1,
				      .validate = validate,
				      .place = place,
				      .observe = observe,
				      .isolates = GPUQ_ISOLATION_MEMORY_LIMITED };
