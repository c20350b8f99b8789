#include "kubelet_admit.h"
#include "audit.h"

#include <stdio.h>
#include <string.h>

static void say_unavailable(const char *name, int64_t ask, int64_t left, char *message, size_t size)
{
	snprintf(
		message, size,
		"Allocate failed due to requested number of devices unavailable for %s. Requested: "
		"%lld, Available: %lld, which is unexpected",
		name, (long long)ask, (long long)left);
}

/* A resource that the node never advertised is not checked at all, as in a real
 * kubelet: the pod runs there without it. */
static const char *shortage(const struct facts *f, const struct res *alloc, const struct res *used,
			    char *message, size_t size)
{
	static char out_of[64];
	struct res want = f->pod.requests;

	res_set(&want, RES_PODS, 1);
	for (unsigned i = 0; i < want.n; i++) {
		const int id = want.item[i].id;
		const char *name = res_name(id);
		const int64_t ask = want.item[i].value, have = res_get(alloc, id);
		const int64_t taken = res_get(used, id);
		/* Devices that went bad while in use leave less than nothing. */
		const int64_t left = have > taken ? have - taken : 0;

		if (!res_has(alloc, id) || ask <= 0 || ask <= left)
			continue;
		audit_overcommit(f, left);
		if (res_is_extended(name)) {
			say_unavailable(name, ask, left, message, size);
			return "UnexpectedAdmissionError";
		}
		snprintf(message, size,
			 "Node didn't have enough resource: %s, requested: %lld, used: %lld, "
			 "capacity: %lld",
			 name, (long long)ask, (long long)taken, (long long)have);
		snprintf(out_of, sizeof(out_of), "OutOf%s", name);
		return out_of;
	}
	return NULL;
}

const char *kubelet_refusal(const struct facts *f, const struct res *alloc, const struct res *used,
			    bool rebooted, char *message, size_t size)
{
	const char *asked = f->pod.play.reject;

	if (rebooted) {
		snprintf(message, size,
			 "Allocate failed due to no healthy devices present; cannot allocate "
			 "unhealthy "
			 "devices nvidia.com/gpu, which is unexpected");
		return "UnexpectedAdmissionError";
	}
	if (!asked)
		return shortage(f, alloc, used, message, size);
	say_unavailable("nvidia.com/gpu", res_get(&f->pod.requests, RES_GPU), 0, message, size);
	/* "true", or the name of another reason such as NodeShutdown. */
	return strcmp(asked, "true") == 0 || strcmp(asked, "1") == 0 ? "UnexpectedAdmissionError"
								     : asked;
}
