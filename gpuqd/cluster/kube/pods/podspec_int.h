/* podspec_int.h - what podspec.c and podspec_container.c share; private to them */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_INT_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_INT_H

#include "gpuqd/cluster/kube/pods/podspec.h"

#define SCRIPT_DIR GPUQ_SCRIPT_PATH
#define SCRIPT_VOLUME "gpuq-script"
#define CODE_ARCHIVE "code.tgz" /* in SCRIPT_DIR */

/* obj[key], made as an empty object or array when it is missing or something else. */
json_t *podspec_object(json_t *obj, const char *key);
json_t *podspec_array(json_t *obj, const char *key);

#endif
