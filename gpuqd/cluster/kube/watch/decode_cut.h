/* decode_cut.h - an annotation that is a document of its own, taken out of its object before that is parsed
 *
 * The cards that HAMi registers are most of the bytes of their nodes, and all of their quotes are escaped: the JSON
 * library would take them apart byte by byte only to put them together again.
 *
 * Touches  memory only.
 * Used by  decode.c cuts, decode_hami.c reads the text.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_CUT_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_CUT_H

#include <stdbool.h>
#include <stddef.h>

#define KUBE_CUT_MAX (8u << 10) /* bytes of what is left of the object, and of the text */

/* A string between its quotes, with its escapes: part of the bytes of the object. */
struct kube_cut {
	const char *text; /* NULL = nothing was cut */
	size_t n;
};

/* Copy the object, but HAMI_REGISTER as "". Returns the bytes of the copy; 0 = it has no such annotation, or more than
 * fits: nothing was cut. */
size_t kube_cut(const char *json, size_t n, char copy[KUBE_CUT_MAX], struct kube_cut *out);

/* Write the text without its escapes. False: it is longer than fits, or has others than those of plain text. */
bool kube_cut_plain(const struct kube_cut *cut, char to[KUBE_CUT_MAX]);

#endif
