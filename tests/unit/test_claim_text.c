/* The line that tells why others leave. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/carry/claim_text.h"
#include "libgpuq/limits.h"

#define LONG "a-queue-with-a-name-that-leaves-no-room-for-many-others-"

/* Claim 0: job 7 (element 3) of queue a, which takes from b. */
static void say(const char *a, const char *b, uint32_t n_sides, const uint32_t *passed,
		struct snap_key key, char *out)
{
	struct snap_queue queues[2] = { { .name = a }, { .name = b } };
	struct snapshot s = { .queues = queues, .n_queues = 2 };
	struct plan_side sides[8] = { { 0, 500, 2500, 3000, 2000 },
				      { 1, 4000, 2000, 1000, GPUQ_UNLIMITED } };
	struct plan_claim claim = { .key = { 7, 3 }, .need = 2000, .n_sides = n_sides };
	struct plan p = { .claims = &claim, .claim_sides = sides, .n_claims = 1 };

	for (uint32_t i = 2; i < n_sides; i++)
		sides[i] = sides[1];
	if (passed)
		memcpy(claim.passed, passed, sizeof(claim.passed));
	cr_assert_eq(claim_text(&s, &p, key, out), out);
}

Test(claim_text, both_sides_in_devices)
{
	char out[CLAIM_TEXT_MAX];

	say("a", "b", 2, NULL, (struct snap_key){ 7, 3 }, out);
	cr_expect_str_eq(out, "needs 2: a 0.5 -> 2.5 (share 3, quota 2); "
			      "b 4 -> 2 (share 1, quota unlimited)");
}

Test(claim_text, who_was_spared)
{
	const uint32_t passed[N_PLAN_PASSED] = {
		[PLAN_PASSED_FIRM] = 1, [PLAN_PASSED_SHIELDED] = 3
	};
	char out[CLAIM_TEXT_MAX];

	say("a", "b", 1, passed, (struct snap_key){ 7, 3 }, out);
	cr_expect_str_eq(out, "needs 2: a 0.5 -> 2.5 (share 3, quota 2); "
			      "spared: 1 cannot be evicted, 3 protected");
}

Test(claim_text, nothing_of_another_job)
{
	char out[CLAIM_TEXT_MAX];

	say("a", "b", 2, NULL, (struct snap_key){ 7, 4 }, out);
	cr_expect_str_empty(out);
}

Test(claim_text, what_is_too_long_ends_at_a_whole_part)
{
	char out[CLAIM_TEXT_MAX];
	size_t len;

	say("a", LONG, 8, NULL, (struct snap_key){ 7, 3 }, out);
	len = strlen(out);
	cr_expect_lt(len, sizeof(out));
	cr_expect_str_eq(out + len - 4, ")...");
}

Test(claim_text, each_rule_once)
{
	const struct plan_action actions[] = {
		{ .rule = "own" }, { .rule = "reclaim-quota" }, { .rule = NULL }, { .rule = "own" }
	};
	char out[CLAIM_RULES_MAX];

	cr_expect_str_eq(claim_rules(actions, 4, out), "own+reclaim-quota");
	cr_expect_str_eq(claim_rules(actions, 0, out), "");
}
