#include "gpuqd/cluster/kube/pods/podspec_code.h"

#include <string.h>

#include "gpuqd/cluster/kube/pods/podspec_int.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define VOLUME "gpuq-code"
#define STORE "gpuq-code-store"
#define URL "GPUQ_CODE_URL" /* and, after it, what else is needed to fetch it */

/* Its first word is the image's name. */
#define NEEDS(words_)                                                                              \
	"fail() { printf %s \"$1\" >/dev/termination-log; exit 3; }\n"                             \
	"for p in " words_ "; do command -v $p >/dev/null || "                                     \
	"fail \"there is no $p in image $0\"; done\n"                                              \
	"cd " GPUQ_CODE_PATH " || exit 3\n"

/* Rights are given to all, since the job may run as another user than this container. */
#define RIGHTS "chmod -R a+rwX ."

/* Check the archive $a, and unpack it. */
#define IS_IT(words_)                                                                              \
	"echo \"$" URL "_SHA256  $a\" | sha256sum -c - >$e 2>&1 || fail '" words_                  \
	" has another digest'\ngzip -dc $a | tar -xf - && rm -f $a $e"

static const char unpack[] =
	NEEDS("tar gzip chmod") "gzip -dc " SCRIPT_DIR "/" CODE_ARCHIVE " | tar -xf - && " RIGHTS;

/* Every program that there is has its turn. They differ in what they say when they fail, and none is to print the
 * address, which is signed. BusyBox checks no certificates: the digest tells whether it is the archive. The network of a
 * pod may come after its start. */
/* clang-format off */
static const char fetch[] = NEEDS("tar gzip chmod sha256sum")
	"a=.gpuq-code.tgz c= e=.gpuq-code.err s=1\n"
	"[ -z \"$" URL "_CA\" ] || { c=.gpuq-code.pem && printf '%s\\n' \"$" URL "_CA\" >$c; }\n"
	"get_curl() { curl -fsS --connect-timeout 20 ${c:+--cacert $c} -o $a \"$" URL "\"; }\n"
	"get_python3() { python3 -c 'import os, shutil, ssl, sys, urllib.request as u\n"
	"x = ssl.create_default_context(cafile=sys.argv[2] or None)\n"
	"try:\n"
	"    with u.urlopen(os.environ[\"" URL "\"], timeout=60, context=x) as r, open(sys.argv[1], \"wb\") as f:\n"
	"        shutil.copyfileobj(r, f)\n"
	"except Exception as e:\n"
	"    sys.exit(str(e))' $a \"$c\"; }\n"
	"get_wget() { k=${c:+--ca-certificate=$c}; if wget --help 2>&1 | grep -qi busybox; then k=; fi\n"
	"wget -q -T 60 $k -O $a \"$" URL "\"; }\n"
	"for w in curl python3 wget; do command -v $w >/dev/null && have=\"$have $w\"; done\n"
	"[ \"$have\" ] || fail \"there is no curl, python3 or wget in image $0\"\n"
	"for i in 1 2 3; do : >$e; for w in $have; do get_$w 2>>$e; s=$?; [ $s != 0 ] || break 2; done; sleep $i; done\n"
	"[ $s = 0 ] || fail \"it could not be fetched by$have (exit status $s): $(tr '\\n' ' ' <$e | cut -c1-150)\"\n"
	IS_IT("what was fetched") " .gpuq-code.pem && " RIGHTS;

/* Others may write to the volume: the copy is checked, not what it was made of. */
static const char take[] = NEEDS("tar gzip chmod sha256sum cp")
	"a=.gpuq-code.tgz e=.gpuq-code.err\n"
	"cp /" STORE "/archive.tgz $a 2>$e || fail \"it could not be read from the volume of code_store: $(tr '\\n' ' ' <$e | cut -c1-150)\"\n"
	IS_IT("what is on the volume of code_store") " && " RIGHTS;
/* clang-format on */

static void put_variable(json_t *container, const char *name, const char *value)
{
	json_array_append_new(podspec_array(container, "env"),
			      json_pack("{s:s, s:s}", "name", name, "value", value));
}

bool podspec_code_is_file(const struct pod_order *o)
{
	return !o->code_url && !o->code_volume;
}

/* Only this container sees the volume, and of it only this archive. */
static void put_store(const struct gpuq_volume *v, json_t *spec, json_t *init)
{
	json_array_append_new(
		podspec_array(spec, "volumes"),
		v->claim ? json_pack("{s:s, s:{s:s, s:b}}", "name", STORE, "persistentVolumeClaim",
				     "claimName", v->claim, "readOnly", 1)
			 : json_pack("{s:s, s:{s:s, s:s, s:b}}", "name", STORE, "nfs", "server",
				     v->nfs->server, "path", v->nfs->path, "readOnly", 1));
	json_array_append_new(json_object_get(init, "volumeMounts"),
			      json_pack("{s:s, s:s, s:s, s:b}", "name", STORE, "mountPath",
					"/" STORE, "subPath", v->sub_path, "readOnly", 1));
}

void podspec_code(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		  json_t *container)
{
	const char *image = o->code_image ? o->code_image : o->image;
	json_t *init = json_pack("{s:s, s:s, s:[s,s,s,s], s:s, s:[{s:s,s:s}]}", "name",
				 KUBE_CODE_CONTAINER, "image", image, "command", "/bin/sh", "-c",
				 o->code_url      ? fetch
				 : o->code_volume ? take
						  : unpack,
				 image, "terminationMessagePolicy", "FallbackToLogsOnError",
				 "volumeMounts", "name", VOLUME, "mountPath", GPUQ_CODE_PATH);

	if (o->code_url) {
		put_variable(init, URL, o->code_url);
		put_variable(init, URL "_SHA256", o->spec->code.digest);
		if (o->code_ca)
			put_variable(init, URL "_CA", o->code_ca);
	} else if (o->code_volume) {
		put_variable(init, URL "_SHA256", o->spec->code.digest);
		put_store(o->code_volume, spec, init);
	} else {
		json_array_append_new(json_object_get(init, "volumeMounts"),
				      json_pack("{s:s, s:s, s:b}", "name", SCRIPT_VOLUME,
						"mountPath", SCRIPT_DIR, "readOnly", 1));
	}
	podspec_machine(g, init); /* a namespace may demand both of every container */
	json_array_insert_new(podspec_array(spec, "initContainers"), 0, init);
	json_array_append_new(podspec_array(spec, "volumes"),
			      json_pack("{s:s, s:{}}", "name", VOLUME, "emptyDir"));
	json_array_append_new(podspec_array(container, "volumeMounts"),
			      json_pack("{s:s, s:s}", "name", VOLUME, "mountPath", GPUQ_CODE_PATH));
	put_variable(container, "GPUQ_CODE_DIR", GPUQ_CODE_PATH);
}

/* ---- gpuq, for steps ---- */

#define STEPS_VOLUME "gpuq-steps"

/* A script, and a command that is srun, find it; what else runs need not have a shell. */
static bool has_path(const struct pod_order *o, const json_t *command)
{
	const char *first = json_string_value(json_array_get(command, 0));

	return o->spec->script || (first && strcmp(first, "srun") == 0);
}

void podspec_steps(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		   json_t *container)
{
	static const char *const launch[] = { GPUQ_LAUNCH_COMMAND };
	json_t *command = json_object_get(container, "command"), *init;
	const bool launches = o->spec->launch.yes && o->n_pods > 1 && json_array_size(command) > 0;

	for (size_t i = 0; i < sizeof(launch) / sizeof(launch[0]) && launches; i++)
		json_array_insert_new(command, i, json_string(launch[i]));
	if (!o->steps_image)
		return;
	init = json_pack("{s:s, s:s, s:[s,s,s,s], s:s, s:[{s:s,s:s}]}", "name",
			 KUBE_STEPS_CONTAINER, "image", o->steps_image, "command", "gpuq", "slurm",
			 "srun", "--carry-to=" GPUQ_STEPS_PATH, "terminationMessagePolicy",
			 "FallbackToLogsOnError", "volumeMounts", "name", STEPS_VOLUME, "mountPath",
			 GPUQ_STEPS_PATH);
	podspec_machine(g, init); /* as that of the code: no more than the pod has anyway */
	json_array_append_new(podspec_array(spec, "initContainers"), init);
	json_array_append_new(podspec_array(spec, "volumes"),
			      json_pack("{s:s, s:{}}", "name", STEPS_VOLUME, "emptyDir"));
	json_array_append_new(podspec_array(container, "volumeMounts"),
			      json_pack("{s:s, s:s, s:b}", "name", STEPS_VOLUME, "mountPath",
					GPUQ_STEPS_PATH, "readOnly", 1));
	if (launches || has_path(o, command))
		json_array_insert_new(command, 0, json_string(GPUQ_STEPS_PATH "/enter"));
}
