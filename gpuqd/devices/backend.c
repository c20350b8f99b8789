#include "gpuqd/devices/backend_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"

static const struct backend *const backends[] = {
	&backend_whole, &backend_mig,         &backend_time_slicing, &backend_mps, &backend_gib,
	&backend_mib,   &backend_gpu_manager, &backend_hami,         &backend_dra,
};

#define N_BACKENDS (sizeof(backends) / sizeof(backends[0]))

const struct backend *backend_of(const char *word)
{
	for (size_t i = 0; i < N_BACKENDS; i++)
		if (strcmp(backends[i]->word, word) == 0)
			return backends[i];
	return NULL;
}

bool backend_shares(const struct gpuq_group *g)
{
	return !g->mig && g->gpus_milli > 0 &&
	       (g->gpu_memory_bytes > 0 || g->gpus_milli % 1000 ||
		(g->gpu_cores > 0 && g->gpu_cores < 100));
}

const char *const *backend_barred(const struct gpuq_group *g, bool claims, struct gpuq_arena *a)
{
	const char **out;
	size_t n = 0;

	if (g->mig || g->gpus_milli == 0)
		return NULL;
	out = gpuq_arena_calloc(a, N_BACKENDS + 1, sizeof(*out));
	for (size_t i = 0; out && i < N_BACKENDS; i++) {
		const bool served = backends[i]->takes ? backends[i]->takes(g) : true;

		if (backends[i] == &backend_dra ? claims && !served
						: gpuq_group_claimed(g) || !served)
			out[n++] = backends[i]->word;
	}
	return n ? out : NULL;
}

/* Without a name or a flavor devices are NVIDIA's, as the other systems' jobs mean them. */
bool backend_wants_nvidia(const struct gpuq_group *g, bool flavors)
{
	return g->gpus_milli > 0 && (!flavors || g->mig) && !gpuq_group_device(g);
}

bool backend_fits_pool(const char *pool, const char *word, size_t n_mig)
{
	const struct backend *b = backend_of(word);

	/* A node without devices to allocate contradicts nothing. */
	if (strcmp(pool, "auto") == 0 || (!b && n_mig == 0))
		return true;
	if (strcmp(pool, "mig") == 0)
		return n_mig > 0;
	return n_mig == 0 && b && strcmp(b->pool, pool) == 0;
}

bool backend_pool_takes(const char *pool, const struct gpuq_group *g)
{
	for (size_t i = 0; i < N_BACKENDS; i++)
		if (strcmp(backends[i]->pool, pool) == 0 &&
		    (!backends[i]->takes || backends[i]->takes(g)))
			return true;
	return strcmp(pool, "auto") == 0;
}

const char *backend_pool_word(const char *pool)
{
	for (size_t i = 0; i < N_BACKENDS; i++)
		if (strcmp(backends[i]->pool, pool) == 0)
			return backends[i]->word;
	return "";
}

enum gpuq_isolation backend_pool_isolates(const char *pool)
{
	for (size_t i = 0; i < N_BACKENDS; i++)
		if (backends[i]->parts && strcmp(backends[i]->pool, pool) == 0)
			return backends[i]->isolates;
	return GPUQ_ISOLATION_NONE;
}

int backend_validate(const struct gpuq_group *g, backend_shape_fn shape_of, void *arg,
		     struct gpuq_err *err)
{
	struct gpuq_err why = GPUQ_ERR_INIT;
	int rc = 0;

	if (!backend_shares(g))
		return 0;
	for (size_t i = 0; i < N_BACKENDS; i++) {
		const struct backend *b = backends[i];
		struct backend_shape shape = { 0 };

		shape_of(arg, b, &shape);
		if (!b->parts || shape.n_nodes == 0)
			continue;
		if (!b->validate || b->validate(g, &shape, &why) == 0)
			return 0;
		rc = GPUQ_ERANGE;
	}
	return rc == 0 ? 0 : gpuq_fail(err, GPUQ_ERANGE, "%s", why.text);
}

int backend_place(const char *word, const struct backend_ask *ask, struct gpuq_arena *a,
		  const struct backend **which, struct backend_place *out, struct gpuq_err *err)
{
	const struct backend *b = backend_of(word);
	struct backend_place p = { .n_limits = 0 };
	int rc;

	*which = NULL;
	if (!b || !b->place || ask->n_devices == 0 || ask->group->mig)
		return 0;
	rc = b->place(b, ask, a, &p, err);
	if (rc != 0)
		return rc;
	*which = b;
	*out = p;
	return 0;
}

int backend_observe(const struct gpuq_strmap *notes, const struct gpuq_amount *asks, size_t n_asks,
		    struct gpuq_arena *a, struct backend_seen *out)
{
	struct backend_seen seen = { .n_devices = 0 };

	for (size_t i = 0; i < N_BACKENDS; i++) {
		const int rc = backends[i]->observe
				       ? backends[i]->observe(notes, asks, n_asks, a, &seen)
				       : 0;

		if (rc != 0)
			return rc;
	}
	*out = seen;
	return 0;
}

/* ---- what the rows share ---- */

int backend_check_memory(const struct gpuq_group *g, const struct backend_shape *s,
			 struct gpuq_err *err)
{
	const int64_t asked = g->gpu_memory_bytes / MIB + (g->gpu_memory_bytes % MIB > 0);

	if (s->device_mib <= 0 || asked <= s->device_mib)
		return 0;
	return gpuq_fail(err, GPUQ_ERANGE,
			 "%" PRId64 " MiB of a device are requested: largest device %" PRId64
			 " GiB (%" PRId64 " MiB)",
			 asked, s->device_mib / 1024, s->device_mib);
}

void backend_note_word(struct backend_place *p, const char *key, const char *value)
{
	p->notes[p->n_notes++] = (struct backend_word){ key, value };
}

int backend_note_number(struct backend_place *p, struct gpuq_arena *a, const char *key,
			int64_t value)
{
	const char *text = gpuq_arena_printf(a, "%" PRId64, value);

	if (!text)
		return GPUQ_ENOMEM;
	backend_note_word(p, key, text);
	return 0;
}

bool backend_indexes_read(const char *text, int *out, size_t *n, size_t max)
{
	while (*text) {
		char *end;
		const long v = strtol(text, &end, 10);

		if (end == text || v < 0 || v > (long)GPUQ_GPUS_PER_POD_MAX || *n == max)
			return false;
		out[(*n)++] = (int)v;
		text = end;
		if (*text == ',')
			text++;
		else if (*text)
			return false;
	}
	return true;
}

static int by_number(const void *x, const void *y)
{
	const int a = *(const int *)x, b = *(const int *)y;

	return (a > b) - (a < b);
}

size_t backend_indexes_sort(int *list, size_t n)
{
	size_t kept = 0;

	if (n > 1)
		qsort(list, n, sizeof(*list), by_number);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || list[i] != list[kept - 1])
			list[kept++] = list[i];
	return kept;
}

int backend_indexes(const char *text, struct gpuq_arena *a, const int **out, size_t *n)
{
	size_t most = 1, read = 0;
	int *list;

	for (const char *p = text; *p && most < GPUQ_GPUS_PER_POD_MAX; p++)
		most += *p == ',';
	list = gpuq_arena_calloc(a, most, sizeof(*list));
	if (!list)
		return GPUQ_ENOMEM;
	*n = backend_indexes_read(text, list, &read, most) ? backend_indexes_sort(list, read) : 0;
	*out = list;
	return 0;
}

int64_t backend_rising_ns(int64_t now_us)
{
	static int64_t last;
	const int64_t now = now_us * 1000;

	last = now > last ? now : last + 1;
	return last;
}

int64_t backend_units_of(int64_t memory_bytes, int64_t milli, int64_t device_mib, int64_t unit_mib)
{
	const int64_t bytes = unit_mib * MIB;
	const int64_t n = memory_bytes > 0 ? memory_bytes / bytes + (memory_bytes % bytes > 0)
					   : device_mib / unit_mib * milli / 1000;

	return n > 0 ? n : 1;
}

int64_t backend_gives_mib(const struct backend *b, int64_t memory_bytes, int64_t milli,
			  int64_t device_mib)
{
	const int64_t unit = b && b->unit_mib > 0 ? b->unit_mib : 1;

	if (memory_bytes == 0 && (milli >= 1000 || unit > device_mib))
		return milli >= 1000 ? device_mib : device_mib * milli / 1000;
	if (b && b->by_replica)
		return device_mib * milli / 1000;
	return backend_units_of(memory_bytes, milli, device_mib, unit) * unit;
}

int backend_words(const char *text, size_t most, struct gpuq_arena *a, struct gpuq_strlist *out)
{
	size_t n = 1;

	for (const char *p = text; *p; p++)
		n += *p == ',';
	if (n > most)
		return 0;
	out->items = gpuq_arena_calloc(a, n, sizeof(*out->items));
	if (!out->items)
		return GPUQ_ENOMEM;
	while (*text) {
		const size_t len = strcspn(text, ",");

		out->items[out->n] = gpuq_arena_strndup(a, text, len);
		if (!out->items[out->n])
			return GPUQ_ENOMEM;
		out->n += len > 0;
		text += len + (text[len] == ',');
	}
	return 0;
}
