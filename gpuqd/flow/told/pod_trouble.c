#include "gpuqd/flow/told/pod_trouble.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

/* True if a trouble of the pod, NULL = none any more, is to be told in place of the one that speaks for its job. */
static bool takes_over(const struct trouble *is, const struct pod_key *key, const char *object,
		       const char *words, enum trouble_whose whose)
{
	/* The first that does not end by itself. */
	if (is->whose == TROUBLE_TURN && object && whose != TROUBLE_TURN)
		return true;
	if (is->pod != key->index)
		return false;
	if (!object || strcmp(is->object, object) != 0)
		return true;
	/* The same: of a turn it is told which pod is before it. */
	return whose == TROUBLE_TURN && is->whose == TROUBLE_TURN && strcmp(is->words, words) != 0;
}

bool pod_trouble_told(const struct pod *p, const struct pod_key *key, const char *object,
		      const char *words, enum trouble_whose whose, bool unserved, struct event *ev)
{
	const struct trouble *is = p->job->life->trouble;

	if (key->attempt != p->job->attempt)
		return false;
	/* Nor does a plugin serve a pod only because its container has another trouble, or none yet. */
	if (is && !object && unserved && is->whose == TROUBLE_PLUGIN)
		return false;
	if (is ? !takes_over(is, key, object, words, whose) : !object)
		return false;
	*ev = (struct event){ .type = EV_JOB_TROUBLE, .job = key->job };
	ev->trouble.object = object;
	ev->trouble.words = words;
	ev->trouble.whose = whose;
	ev->trouble.pod = key->index;
	return true;
}

/* Name the job as well where the pod is one of ours: its number is what its owner knows. */
static void name_holder(const struct model *m, const struct turn_wait *w, char *out, size_t room)
{
	struct pod_key key;

	if (!model_pod_name_parse(m, w->pod, &key))
		snprintf(out, room, "pod %.100s%s%.200s", w->namespace_, *w->namespace_ ? "/" : "",
			 w->pod);
	else if (key.job.index < 0)
		snprintf(out, room, "pod %.200s of job %" PRIu32, w->pod, key.job.id);
	else
		snprintf(out, room, "pod %.200s of job %" PRIu32 "_%" PRId32, w->pod, key.job.id,
			 key.job.index);
}

const char *pod_trouble_turn(const struct model *m, const struct turn_wait *w, char *words,
			     size_t room)
{
	char holder[400], since[32], until[32];

	name_holder(m, w, holder, sizeof(holder));
	gpuq_instant_print(w->since_us, since, sizeof(since));
	gpuq_instant_print(w->until_us, until, sizeof(until));
	if (w->lock) {
		snprintf(words, room,
			 "node %.100s is locked for %s since %s; the lock is stale at %s", w->node,
			 holder, since, until);
		return "NodeLock";
	}
	snprintf(words, room, "node %.100s serves %s before it, since %s; the turn ends %s%s%s",
		 w->node, holder, since, w->until_us ? "at " : "when that is served or gone",
		 w->until_us ? until : "", w->until_us ? " at the latest" : "");
	return "DeviceTurn";
}
