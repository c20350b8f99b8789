#include "gpuqd/state/record/request.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"

/* What does not bear on where and when a job can run is left out, so that jobs which
 * differ only in it share a request. */
int request_encode(const struct gpuq_spec *spec, struct gpuq_buf *out, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_spec bare = { .n_groups = spec->n_groups };
	static const char *const none[] = { "true" };
	struct gpuq_val *v;
	int rc = 0;

	bare.flavors = spec->flavors;
	bare.licenses = spec->licenses;
	bare.exclusive = spec->exclusive;
	bare.requeue = true;
	bare.context.umask = -1;
	bare.groups = gpuq_arena_calloc(&mem, spec->n_groups, sizeof(*bare.groups));
	if (!bare.groups) {
		rc = gpuq_no_memory(err);
		goto out;
	}
	for (size_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *from = &spec->groups[i];
		struct gpuq_group *to = &bare.groups[i];

		*to = *from;
		to->image = NULL;
		to->workdir = NULL;
		to->template_ = NULL;
		/* A group needs a command to read back as valid. */
		to->command = (struct gpuq_strlist){ (const char **)none, 1 };
		to->args = (struct gpuq_strlist){ 0 };
		to->env = (struct gpuq_strmap){ 0 };
		to->volumes = NULL;
		to->n_volumes = 0;
	}
	v = gpuq_spec_write(&mem, &bare);
	if (v)
		gpuq_mp_write(out, v);
	if (!v || out->failed)
		rc = gpuq_no_memory(err);
out:
	gpuq_arena_done(&mem);
	return rc;
}

int request_decode(const void *bytes, size_t n, struct request **out, struct gpuq_err *err)
{
	static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						   GPUQ_MSG_ITEMS_MAX };
	struct request *r = calloc(1, sizeof(*r));
	struct gpuq_reader rd = { .err = err, .lenient = true, .stored = true };
	struct gpuq_val *v;
	int rc;

	if (!r)
		return gpuq_no_memory(err);
	rd.arena = &r->arena;
	rc = gpuq_mp_read(&r->arena, &lim, bytes, n, &v, err);
	if (rc == 0)
		rc = gpuq_spec_read(&rd, v, &r->spec);
	r->bytes = rc == 0 ? malloc(n ? n : 1) : NULL;
	if (rc == 0 && !r->bytes)
		rc = gpuq_no_memory(err);
	if (rc != 0) {
		request_free(r);
		return rc;
	}
	memcpy(r->bytes, bytes, n);
	r->len = n;
	r->n_pods = (uint32_t)gpuq_spec_pods(&r->spec);
	r->gpus_milli = gpuq_spec_gpus_milli(&r->spec);
	*out = r;
	return 0;
}

struct request *request_borrow(const struct gpuq_spec *spec, const void *bytes, size_t n)
{
	struct request *r = calloc(1, sizeof(*r));

	if (r)
		r->bytes = malloc(n ? n : 1);
	if (!r || !r->bytes) {
		free(r);
		return NULL;
	}
	memcpy(r->bytes, bytes, n);
	r->len = n;
	r->spec = *spec;
	r->n_pods = (uint32_t)gpuq_spec_pods(&r->spec);
	r->gpus_milli = gpuq_spec_gpus_milli(&r->spec);
	return r;
}

void request_free(struct request *r)
{
	if (!r)
		return;
	gpuq_arena_done(&r->arena);
	free(r->bytes);
	free(r);
}
