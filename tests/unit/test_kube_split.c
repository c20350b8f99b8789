#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/split.h"
#include "libgpuq/limits.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct gpuq_buf got;
static unsigned stop_after;

static bool keep(void *arg, enum split_what what, const char *json, size_t n)
{
	gpuq_buf_adds(&got, what == SPLIT_META ? "meta " : "");
	gpuq_buf_add(&got, json, n);
	gpuq_buf_addc(&got, '\n');
	return stop_after == 0 || --stop_after > 0;
}

static int run(struct split *s, enum split_kind kind, const char *text, size_t chunk)
{
	size_t n = strlen(text);
	int rc = 0;

	gpuq_buf_clear(&got);
	split_init(s, kind, keep, NULL);
	while (n > 0 && rc == 0) {
		size_t k = chunk < n ? chunk : n;

		rc = split_feed(s, text, k, NULL);
		text += k;
		n -= k;
	}
	return rc == 0 ? split_end(s, NULL) : rc;
}

static const struct {
	const char *name;
	enum split_kind kind;
	const char *in;
	int rc;
	const char *want;
	uint64_t garbage;
} cases[] = {
	{ "two events", SPLIT_STREAM, "{\"a\":1}\n{\"b\":[{}]}\n", 0, "{\"a\":1}\n{\"b\":[{}]}\n",
	  0 },
	{ "brackets in strings", SPLIT_STREAM, "{\"a\":\"}]\\\"{\"}", 0, "{\"a\":\"}]\\\"{\"}\n",
	  0 },
	{ "no newline between", SPLIT_STREAM, "{}{}", 0, "{}\n{}\n", 0 },
	{ "managedFields are left out", SPLIT_STREAM,
	  "{\"m\":{\"managedFields\": [{\"x\":\"]\"}],\"n\":1}}", 0,
	  "{\"m\":{\"managedFields\": 0,\"n\":1}}\n", 0 },
	{ "so is what a container is told", SPLIT_STREAM,
	  "{\"c\":[{\"env\":[{\"name\":\"a\"}],\"args\":[\"b\"],\"resources\":{\"env\":1}}]}", 0,
	  "{\"c\":[{\"env\":0,\"args\":0,\"resources\":{\"env\":1}}]}\n", 0 },
	{ "a value of that name is not", SPLIT_STREAM, "{\"m\":\"managedFields\",\"n\":[1]}", 0,
	  "{\"m\":\"managedFields\",\"n\":[1]}\n", 0 },
	{ "a scalar of that name stays", SPLIT_STREAM, "{\"images\":7,\"n\":[1]}", 0,
	  "{\"images\":7,\"n\":[1]}\n", 0 },
	{ "garbage up to the line's end", SPLIT_STREAM, "]x{}\n{\"a\":1}\n", 0, "{\"a\":1}\n", 1 },
	{ "a string that never ends", SPLIT_STREAM, "{\"a\":\"b\n{\"c\":2}\n", 0, "{\"c\":2}\n",
	  1 },
	{ "cut inside an object", SPLIT_STREAM, "{\"a\":", GPUQ_EPROTO, "", 0 },
	{ "nothing at all", SPLIT_STREAM, "", 0, "", 0 },
	{ "a list", SPLIT_LIST,
	  "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":1},"
	  "{\"items\":[{}]}]}",
	  0, "meta {\"resourceVersion\":\"7\"}\n{\"a\":1}\n{\"items\":[{}]}\n", 0 },
	{ "metadata behind, indented", SPLIT_LIST,
	  "{\n \"items\": [\n  {\"a\": [2]}\n ],\n \"metadata\": {\"x\": \"y\"}\n}\n", 0,
	  "{\"a\": [2]}\nmeta {\"x\": \"y\"}\n", 0 },
	{ "items null", SPLIT_LIST, "{\"items\":null,\"metadata\":{}}", 0, "meta {}\n", 0 },
	{ "items of another kind", SPLIT_LIST, "{\"items\":[3,[{}],{}]}", 0, "{}\n", 1 },
	{ "metadata inside an item is the item's", SPLIT_LIST,
	  "{\"items\":[{\"metadata\":{\"n\":1}}]}", 0, "{\"metadata\":{\"n\":1}}\n", 0 },
	{ "HTML", SPLIT_LIST, "<html>", GPUQ_EPROTO, "", 0 },
	{ "an empty answer", SPLIT_LIST, "", GPUQ_EPROTO, "", 0 },
	{ "cut list", SPLIT_LIST, "{\"items\":[{},", GPUQ_EPROTO, "{}\n", 0 },
	{ "more behind the list", SPLIT_LIST, "{\"items\":[]}{}", GPUQ_EPROTO, "", 0 },
};

Test(kube_split, cuts_whatever_the_chunks)
{
	static const size_t chunks[] = { 1, 2, 3, 7, 1000 };

	for (size_t i = 0; i < N(cases); i++)
		for (size_t k = 0; k < N(chunks); k++) {
			struct split s;
			int rc = run(&s, cases[i].kind, cases[i].in, chunks[k]);

			cr_expect_eq(rc, cases[i].rc, "%s, chunks of %zu: %d", cases[i].name,
				     chunks[k], rc);
			cr_expect_str_eq(gpuq_buf_str(&got), cases[i].want, "%s, chunks of %zu",
					 cases[i].name, chunks[k]);
			cr_expect_eq(s.garbage, cases[i].garbage, "%s", cases[i].name);
			split_done(&s);
		}
}

Test(kube_split, other_kinds_keep_members_of_those_names)
{
	static const char text[] =
		"{\"m\":{\"managedFields\":[1]},\"scheduling\":{\"tolerations\":[{}]}}";
	struct split s;

	gpuq_buf_clear(&got);
	split_init(&s, SPLIT_STREAM, keep, NULL);
	s.whole = true;
	cr_assert_eq(split_feed(&s, text, strlen(text), NULL), 0);
	cr_expect_str_eq(gpuq_buf_str(&got), "{\"m\":{\"managedFields\":0},"
					     "\"scheduling\":{\"tolerations\":[{}]}}\n");
	split_done(&s);
}

Test(kube_split, skips_what_is_too_large)
{
	struct gpuq_buf in = GPUQ_BUF_INIT;
	struct split s;

	gpuq_buf_adds(&in, "{\"a\":\"");
	while (in.len <= GPUQ_KUBE_OBJECT_BYTES_MAX)
		gpuq_buf_adds(&in, "0123456789012345678901234567890123456789");
	gpuq_buf_adds(&in, "\"}\n{\"b\":1}\n");
	for (size_t chunk = 1000; chunk < 10000000; chunk *= 10000) {
		cr_assert_eq(run(&s, SPLIT_STREAM, gpuq_buf_str(&in), chunk), 0);
		cr_expect_str_eq(gpuq_buf_str(&got), "{\"b\":1}\n");
		cr_expect_eq(s.too_big, 1);
		cr_expect_eq(s.objects, 1);
		cr_expect_lt(s.buf.room, (size_t)GPUQ_KUBE_OBJECT_BYTES_MAX, "memory is kept");
		split_done(&s);
	}
	gpuq_buf_done(&in);
}

/* Skipped members do not count: such an object is not too large. */
Test(kube_split, counts_only_what_is_kept)
{
	struct gpuq_buf in = GPUQ_BUF_INIT;
	struct split s;

	gpuq_buf_adds(&in, "{\"managedFields\":[");
	while (in.len <= GPUQ_KUBE_OBJECT_BYTES_MAX)
		gpuq_buf_adds(&in, "\"0123456789012345678901234567890123456789\",");
	gpuq_buf_adds(&in, "0]}");
	cr_assert_eq(run(&s, SPLIT_STREAM, gpuq_buf_str(&in), 4096), 0);
	cr_expect_str_eq(gpuq_buf_str(&got), "{\"managedFields\":0}\n");
	split_done(&s);
	gpuq_buf_done(&in);
}

Test(kube_split, skips_what_is_too_deep)
{
	struct gpuq_buf in = GPUQ_BUF_INIT;
	struct split s;

	for (int i = 0; i < 70; i++)
		gpuq_buf_adds(&in, "{\"a\":");
	gpuq_buf_adds(&in, "1");
	for (int i = 0; i < 70; i++)
		gpuq_buf_adds(&in, "}");
	gpuq_buf_adds(&in, "{}");
	cr_assert_eq(run(&s, SPLIT_STREAM, gpuq_buf_str(&in), 5), 0);
	cr_expect_str_eq(gpuq_buf_str(&got), "{}\n");
	cr_expect_eq(s.too_deep, 1);
	split_done(&s);
	gpuq_buf_done(&in);
}

Test(kube_split, stops_when_the_reader_wants_no_more)
{
	struct split s;

	stop_after = 1;
	cr_expect_eq(run(&s, SPLIT_STREAM, "{}{}{}", 100), GPUQ_ECANCELED);
	cr_expect_str_eq(gpuq_buf_str(&got), "{}\n");
	cr_expect_eq(split_feed(&s, "{}", 2, NULL), GPUQ_ECANCELED);
	split_done(&s);
}
