/* decode_plain.h - JSON as an apiserver writes it, read quickly
 *
 * Most of the time that the JSON library needs for an object it spends on single bytes: each of them passes three of
 * its functions. Nearly all strings of an apiserver are plain ASCII, and are taken whole here; the library makes the
 * values, reads each string with an escape or other characters, and is the judge of all else.
 *
 * Touches  memory only.
 * Used by  decode.c; the unit tests and fuzz_kube.c compare it with the library.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_PLAIN_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_PLAIN_H

#include <jansson.h>
#include <stddef.h>

/* Return the object that is this text, as json_loadb() with JSON_ALLOW_NUL has it; NULL = that one has to read it: it is
 * wrong, or has something that is not plain. */
json_t *kube_plain(const char *json, size_t n);

#endif
