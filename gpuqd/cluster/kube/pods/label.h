/* label.h - any name as the value of a Kubernetes label
 *
 * Owns     nothing. Touches memory only.
 * Used by  podspec.c (labels of pods), owned.c (labels of what they mount).
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_LABEL_H
#define GPUQD_CLUSTER_KUBE_PODS_LABEL_H

#define LABEL_ROOM 64

/* A name that is a label value already is taken as it is. Any other has its foreign characters
 * replaced by _, is cut, and ends with - and 8 hex digits of its hash, so that two names do not
 * become one. */
void label_value(const char *name, char out[LABEL_ROOM]);

#endif
