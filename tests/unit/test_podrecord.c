#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/state/record/podrecord.h"
#include "libgpuq/units.h"

static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);

static const struct podrecord whole = {
	.user = "ann",
	.queue = "research",
	.qos = "normal",
	.name = "llama-ft",
	.account = "ml",
	.flavor = "a100",
	.uid = 1001,
	.gid = 100,
	.submit_us = INT64_C(1795274430500000),
	.limit_us = 3600 * GPUQ_US_PER_S,
	.gpus_milli = 8000,
	.cpu_milli = 64000,
	.memory_bytes = INT64_C(512) << 30,
	.pods = 4,
	.group = 1,
	.group_index = 3,
	.element_id = 4000000001,
};

static const char *text_of(const struct podrecord *r)
{
	static struct gpuq_buf b;
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_buf_clear(&b);
	cr_assert_eq(podrecord_write(r, &b, &err), 0, "%s", err.text);
	cr_assert_leq(b.len, PODRECORD_BYTES_MAX);
	return gpuq_buf_str(&b);
}

static struct podrecord read_back(const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct podrecord r;

	cr_assert_eq(podrecord_read(&arena, text, strlen(text), &r, &err), 0, "%s: %s", text,
		     err.text);
	return r;
}

Test(podrecord, reads_back)
{
	const struct podrecord r = read_back(text_of(&whole));

	cr_expect_str_eq(r.user, whole.user);
	cr_expect_str_eq(r.queue, whole.queue);
	cr_expect_str_eq(r.qos, whole.qos);
	cr_expect_str_eq(r.name, whole.name);
	cr_expect_str_eq(r.account, whole.account);
	cr_expect_str_eq(r.flavor, whole.flavor);
	cr_expect_eq(r.uid, whole.uid);
	cr_expect_eq(r.gid, whole.gid);
	cr_expect_eq(r.submit_us, whole.submit_us);
	cr_expect_eq(r.limit_us, whole.limit_us);
	cr_expect_eq(r.gpus_milli, whole.gpus_milli);
	cr_expect_eq(r.cpu_milli, whole.cpu_milli);
	cr_expect_eq(r.memory_bytes, whole.memory_bytes);
	cr_expect_eq(r.pods, whole.pods);
	cr_expect_eq(r.group, whole.group);
	cr_expect_eq(r.group_index, whole.group_index);
	cr_expect_eq(r.element_id, whole.element_id);
}

/* The text is a format: pods that carry it outlive this version. */
Test(podrecord, version_1)
{
	const struct podrecord r = read_back("{\"v\":1,\"user\":\"ann\",\"queue\":\"default\","
					     "\"qos\":\"normal\",\"later\":[1,{\"x\":2}]}");

	cr_expect_str_eq(
		text_of(&whole),
		"{\"v\":1,\"user\":\"ann\",\"uid\":1001,\"gid\":100,\"queue\":\"research\","
		"\"qos\":\"normal\",\"account\":\"ml\",\"name\":\"llama-ft\","
		"\"flavor\":\"a100\",\"submit\":1795274430500000,\"limit\":3600000000,"
		"\"gpus\":8000,\"cpu\":64000,\"memory\":549755813888,\"pods\":4,"
		"\"group\":1,\"nth\":3,\"element\":4000000001}");
	cr_expect_eq(r.limit_us, GPUQ_UNLIMITED);
	cr_expect_eq(r.pods, 1);
	cr_expect_str_eq(r.name, "");
	cr_expect_str_eq(r.flavor, "");
}

Test(podrecord, values_are_sanitised)
{
	struct podrecord r = whole;
	char longest[4000];

	r.name = "a\nb\x1b[31m\"\\\xc2\x9b\xff\xc3\xa9";
	r = read_back(text_of(&r));
	cr_expect_str_eq(r.name, "a?b?[31m\"\\???\xc3\xa9");
	/* A cut falls between two characters, and the rest of the record stays. */
	for (size_t i = 0; i < sizeof(longest) - 1; i += 2)
		memcpy(longest + i, "\xc3\xa9", 2);
	longest[sizeof(longest) - 2] = '\0';
	r = whole;
	r.name = r.account = longest;
	r = read_back(text_of(&r));
	cr_expect(strlen(r.name) >= 64 && strlen(r.name) <= 256);
	cr_expect_eq(strlen(r.name) % 2, 0);
	cr_expect_str_eq(r.queue, "research");
}

/* A name of quotes takes two bytes for each, a user may be long as well. */
Test(podrecord, never_longer_than_it_may_be)
{
	struct podrecord r = whole;
	char quotes[257];

	memset(quotes, '"', sizeof(quotes) - 1);
	quotes[sizeof(quotes) - 1] = '\0';
	r.user = r.name = r.account = quotes;
	r.submit_us = r.limit_us = r.cpu_milli = r.memory_bytes = INT64_MAX - 1;
	r = read_back(text_of(&r));
	cr_expect_str_eq(r.user, quotes);
}

Test(podrecord, refuses)
{
#define BASE "\"user\":\"ann\",\"queue\":\"q\",\"qos\":\"normal\""
	static const struct {
		const char *text;
		int code;
	} bad[] = {
		{ "", GPUQ_EINVAL },
		{ "v: 1", GPUQ_EINVAL },
		{ "{" BASE "}", GPUQ_EINVAL },
		{ "{\"v\":2," BASE "}", GPUQ_EVERSION },
		{ "{\"v\":1," BASE, GPUQ_EINVAL },
		{ "{\"v\":1," BASE "}\n---\n{}", GPUQ_EINVAL },
		{ "{\"v\":1," BASE ",\"user\":\"bob\"}", GPUQ_EINVAL },
		{ "{\"v\":1,\"user\":\"ann\",\"queue\":\"../q\",\"qos\":\"n\"}", GPUQ_EINVAL },
		{ "{\"v\":1," BASE ",\"gpus\":-1}", GPUQ_ERANGE },
		{ "{\"v\":1," BASE ",\"pods\":4097}", GPUQ_ERANGE },
		{ "{\"v\":1," BASE ",\"uid\":4294967296}", GPUQ_ERANGE },
	};
	char longest[PODRECORD_BYTES_MAX + 2];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct podrecord r = { .user = "untouched" };

		cr_expect_eq(podrecord_read(&arena, bad[i].text, strlen(bad[i].text), &r, &err),
			     bad[i].code, "%s: %s", bad[i].text, err.text);
		cr_expect_str_eq(r.user, "untouched");
	}
	memset(longest, ' ', sizeof(longest));
	memcpy(longest, "{\"v\":1," BASE "}", strlen("{\"v\":1," BASE "}"));
	cr_expect_eq(podrecord_read(&arena, longest, sizeof(longest) - 1,
				    &(struct podrecord){ .user = "" }, NULL),
		     GPUQ_ETOOBIG);
}
