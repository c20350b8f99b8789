#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/cluster/kube/adopt/gate.h"
#include "gpuqd/cluster/kube/adopt/suspended.h"
#include "gpuqd/cluster/kube/watch/decode.h"

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t *v = json_loads(text, 0, &e);

	cr_assert(v, "%s: %s", text, e.text);
	return v;
}

#define OURS "{\"name\":\"gpuq.io/node\"}"
#define THEIRS "{\"name\":\"x.io/g\"}"
#define META                                                                                       \
	"\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\""
#define JOB(meta, spec, template_, status)                                                         \
	"{" META meta "},\"spec\":{" spec "\"template\":{\"spec\":{" template_                     \
	"}}},\"status\":{" status "}}"

static const struct {
	const char *job;
	enum suspended_state is;
	const char *why;
} states[] = {
	{ JOB("", "\"suspend\":true,", "", ""), SUSPENDED_WAITS, "" },
	{ JOB("", "\"suspend\":true,\"completions\":2147483647,\"parallelism\":1,", "", ""),
	  SUSPENDED_WAITS, "" },
	{ JOB("", "\"suspend\":true,\"completions\":3,\"parallelism\":2000000000,", "", ""),
	  SUSPENDED_WAITS, "" },
	{ JOB("", "\"suspend\":true,\"managedBy\":\"kubernetes.io/job-controller\",", "", ""),
	  SUSPENDED_WAITS, "" },
	{ JOB("", "\"suspend\":false,", "\"schedulingGates\":[" OURS "]", ""), SUSPENDED_GATED,
	  "" },
	{ JOB("", "\"suspend\":true,", "\"schedulingGates\":[" THEIRS "," OURS "]", ""),
	  SUSPENDED_TO_RESTORE, "" },
	{ JOB("", "\"suspend\":false,", "", ""), SUSPENDED_NOT_OURS, "started by another client" },
	{ JOB("", "", "", ""), SUSPENDED_NOT_OURS, "started by another client" },
	{ JOB(",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "\"suspend\":true,", "", ""),
	  SUSPENDED_NOT_OURS, "being deleted" },
	{ JOB(",\"annotations\":{\"gpuq.io/cancelled\":\"7\"}", "\"suspend\":true,", "", ""),
	  SUSPENDED_NOT_OURS, "job 7 of it was cancelled" },
	{ JOB("", "\"suspend\":true,", "\"schedulingGates\":[" OURS "]",
	      "\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]"),
	  SUSPENDED_NOT_OURS, "has ended" },
	{ JOB("", "\"suspend\":true,", "",
	      "\"conditions\":[{\"type\":\"Failed\",\"status\":\"False\"}]"),
	  SUSPENDED_WAITS, "" },
	{ JOB("", "\"suspend\":true,", "\"schedulingGates\":[" THEIRS "]", ""), SUSPENDED_REFUSED,
	  "scheduling gate x.io/g of others" },
	{ JOB("", "\"suspend\":true,\"manualSelector\":true,", "", ""), SUSPENDED_REFUSED,
	  "manualSelector" },
	{ JOB("", "\"suspend\":true,\"managedBy\":\"x.io/y\",", "", ""), SUSPENDED_REFUSED,
	  "managedBy is x.io/y" },
	{ JOB("", "\"suspend\":true,\"parallelism\":0,", "", ""), SUSPENDED_REFUSED, "not 0" },
	{ JOB("", "\"suspend\":true,\"parallelism\":2000000000,", "", ""), SUSPENDED_REFUSED,
	  "not 2000000000" },
	{ "{\"spec\":[],\"metadata\":7}", SUSPENDED_NOT_OURS, "" },
};

Test(kube_suspended, what_is_done_with_a_job)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		json_t *job = parse(states[i].job);
		struct gpuq_err why = GPUQ_ERR_INIT;

		cr_expect_eq(suspended_state(job, &why), states[i].is, "%s", states[i].job);
		cr_expect(strstr(why.text, states[i].why), "%s: %s", states[i].job, why.text);
		json_decref(job);
	}
}

static void expect(json_t *v, const char *want)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);

	cr_expect_str_eq(text, want);
	free(text);
	json_decref(v);
}

#define OF "\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\"}"

Test(kube_suspended, each_write_is_of_the_version_that_was_decided_on)
{
	json_t *job = parse(JOB("", "\"suspend\":true,", "\"schedulingGates\":[" THEIRS "]", ""));
	json_t *gated = parse(
		JOB("", "\"suspend\":true,", "\"schedulingGates\":[" THEIRS "," OURS "]", ""));
	json_t *plain = parse(JOB("", "\"suspend\":true,", "\"schedulingGates\":[" OURS "]",
				  "\"startTime\":\"2026-01-01T00:00:00Z\""));

	expect(suspended_to_start(job),
	       "{" OF
	       ",\"spec\":{\"suspend\":false,\"template\":{\"spec\":{\"schedulingGates\":[" THEIRS
	       "," OURS "]}}}}");
	/* Once more: it is there once. */
	expect(suspended_to_start(gated),
	       "{" OF
	       ",\"spec\":{\"suspend\":false,\"template\":{\"spec\":{\"schedulingGates\":[" THEIRS
	       "," OURS "]}}}}");
	expect(suspended_to_restore(gated),
	       "{" OF ",\"spec\":{\"template\":{\"spec\":{\"schedulingGates\":[" THEIRS "]}}}}");
	expect(suspended_to_restore(plain),
	       "{" OF ",\"spec\":{\"template\":{\"spec\":{\"schedulingGates\":null}}}}");
	expect(suspended_to_stop(job, 0), "{" OF ",\"spec\":{\"suspend\":true}}");
	expect(suspended_to_stop(job, 12),
	       "{\"metadata\":{\"annotations\":{\"gpuq.io/cancelled\":\"12\"},\"resourceVersion\":"
	       "\"7\",\"uid\":\"u\"},\"spec\":{\"suspend\":true}}");
	expect(suspended_to_reset(plain), "{" OF ",\"status\":{\"startTime\":null}}");
	cr_expect(suspended_has_begun(plain) && !suspended_has_begun(job));
	json_decref(job);
	json_decref(gated);
	json_decref(plain);
}

Test(kube_suspended, its_pod_has_the_labels_of_both_its_own_first)
{
	json_t *job =
		parse("{\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\","
		      "\"labels\":{\"a\":\"job\",\"q\":\"x\"}},\"spec\":{\"template\":{"
		      "\"metadata\":{\"labels\":{\"a\":\"pod\"}},\"spec\":{\"nodeName\":\"\"}}}}");

	expect(suspended_pod(job),
	       "{\"metadata\":{\"annotations\":{},\"labels\":{\"a\":\"pod\",\"q\":\"x\"},\"name\":"
	       "\"j\",\"namespace\":\"n\",\"uid\":\"u\"},\"spec\":{\"nodeName\":\"\"}}");
	json_decref(job);
}

#define NODE "{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}"
#define TERMS(terms)                                                                               \
	"{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"                  \
	"\"nodeSelectorTerms\":[" terms "]}}}"

static const struct {
	const char *spec, *gates, *affinity;
} openings[] = {
	{ "\"schedulingGates\":[" OURS "]", "null", TERMS("{\"matchFields\":[" NODE "]}") },
	{ "\"schedulingGates\":[" OURS "," THEIRS "],\"affinity\":{\"podAffinity\":{}}",
	  "[" THEIRS "]", TERMS("{\"matchFields\":[" NODE "]}") },
	/* Alternatives: none of them may lead to another node. */
	{ "\"schedulingGates\":[" OURS
	  "],\"affinity\":" TERMS("{\"matchExpressions\":[1]},{\"matchFields\":[2]}"),
	  "null",
	  TERMS("{\"matchExpressions\":[1],\"matchFields\":[" NODE "]},{\"matchFields\":[2," NODE
		"]}") },
};

Test(kube_suspended, a_pod_loses_its_gate_and_its_choice_in_one_write)
{
	for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
		char text[900], want[900];
		json_t *pod;

		snprintf(text, sizeof(text), "{" META "},\"spec\":{%s}}", openings[i].spec);
		snprintf(want, sizeof(want),
			 "{" OF ",\"spec\":{\"affinity\":%s,\"schedulingGates\":%s}}",
			 openings[i].affinity, openings[i].gates);
		pod = parse(text);
		cr_expect(gate_is_closed(pod));
		expect(gate_opening(pod, "n1"), want);
		json_decref(pod);
	}
}

Test(kube_suspended, a_pod_without_the_gate_is_open)
{
	json_t *pod = parse("{\"spec\":{\"schedulingGates\":[" THEIRS "]}}");

	cr_expect(!gate_is_closed(pod));
	json_decref(pod);
}
