/* decode_cut.h - an annotation that is a document of its own, taken out of its object before that is parsed
 *
 * The cards that HAMi registers are most of the bytes of their nodes, and all of their quotes are escaped: the JSON
 * library would take them apart byte by byte only to put them together again.
 *
 * Touches  memory only.
 * Used by  decode.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_CUT_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_CUT_H

#include <stddef.h>

#define KUBE_CUT_MAX (8u << 10) /* bytes of what is left of the object, and of the text */

/* Copy the object, but HAMI_REGISTER as "", and write that text without its escapes. Returns the bytes of the copy; 0 =
 * it has no such annotation, more than fits, or other text than plain: nothing was cut. */
size_t kube_cut(const char *json, size_t n, char copy[KUBE_CUT_MAX], char plain[KUBE_CUT_MAX]);

#endif
