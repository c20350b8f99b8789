#include "gpuqd/cluster/kube/pods/podspec_restrict.h"

#include <string.h>

#include "gpuqd/cluster/kube/pods/podspec_int.h"

static void absent(json_t *obj, const char *key, json_t *value)
{
	if (json_object_get(obj, key) && !json_is_null(json_object_get(obj, key)))
		json_decref(value);
	else
		json_object_set_new(obj, key, value);
}

/* "ALL" among what is dropped; what is added was checked when the job came. */
static void drop_all(json_t *security)
{
	json_t *drop = podspec_array(podspec_object(security, "capabilities"), "drop"), *v;
	size_t i;

	json_array_foreach(drop, i, v) if (json_is_string(v) &&
					   strcmp(json_string_value(v), "ALL") == 0) return;
	json_array_append_new(drop, json_string("ALL"));
}

static void restrict_all(json_t *containers)
{
	json_t *c;
	size_t i;

	json_array_foreach(containers, i, c)
	{
		json_t *security = podspec_object(c, "securityContext");

		absent(security, "allowPrivilegeEscalation", json_false());
		drop_all(security);
	}
}

/* The profile of system calls is set for every pod: podspec.c. */
void podspec_restrict(json_t *spec)
{
	absent(podspec_object(spec, "securityContext"), "runAsNonRoot", json_true());
	restrict_all(json_object_get(spec, "initContainers"));
	restrict_all(json_object_get(spec, "containers"));
}
