/* facts.h - what is read from an object once, when it is written
 *
 * Owns     the reading of metadata, pod spec and gpuq.test/ annotations.
 */
#ifndef FAKEKUBE_FACTS_H
#define FAKEKUBE_FACTS_H

#include "version.h"

struct facts *facts_new(struct kind *kind, const json_t *obj);
/* Facts of an object that cannot be parsed: name and namespace only. */
struct facts *facts_bare(const char *ns, const char *name, const char *uid);
void facts_unref(struct facts *f);

/* The value of a gpuq.test/ annotation that is malformed, for a warning: the
 * key, or NULL when all can be used. */
const char *play_bad_key(const json_t *obj);

/* Behaviour of the kubelet without annotations. */
extern int64_t play_default_run_us, play_default_start_us, play_default_exit_us;

#endif
