#include "gpuqd/cluster/kube/pods/podspec_code.h"

#include "gpuqd/cluster/kube/pods/podspec_int.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define VOLUME "gpuq-code"

/* Rights are given to all, since the job may run as another user than this container. */
static const char unpack[] =
	"for p in tar gzip chmod; do command -v $p >/dev/null || "
	"{ echo \"there is no $p in image $0\" >/dev/termination-log; exit 3; }; done\n"
	"cd " GPUQ_CODE_PATH " && gzip -dc " SCRIPT_DIR "/" CODE_ARCHIVE
	" | tar -xf - && chmod -R a+rwX .";

void podspec_code(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		  json_t *container)
{
	const char *image = o->code_image ? o->code_image : o->image;
	json_t *init =
		json_pack("{s:s, s:s, s:[s,s,s,s], s:s, s:[{s:s,s:s,s:b}, {s:s,s:s}]}", "name",
			  KUBE_CODE_CONTAINER, "image", image, "command", "/bin/sh", "-c", unpack,
			  image, "terminationMessagePolicy", "FallbackToLogsOnError",
			  "volumeMounts", "name", SCRIPT_VOLUME, "mountPath", SCRIPT_DIR,
			  "readOnly", 1, "name", VOLUME, "mountPath", GPUQ_CODE_PATH);

	podspec_machine(g, init); /* a namespace may demand both of every container */
	json_array_insert_new(podspec_array(spec, "initContainers"), 0, init);
	json_array_append_new(podspec_array(spec, "volumes"),
			      json_pack("{s:s, s:{}}", "name", VOLUME, "emptyDir"));
	json_array_append_new(podspec_array(container, "volumeMounts"),
			      json_pack("{s:s, s:s}", "name", VOLUME, "mountPath", GPUQ_CODE_PATH));
	json_array_append_new(
		podspec_array(container, "env"),
		json_pack("{s:s, s:s}", "name", "GPUQ_CODE_DIR", "value", GPUQ_CODE_PATH));
}
