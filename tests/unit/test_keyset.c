/* A set of keys against an array that says of each number whether it is in. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>

#include "gpuqd/util/keyset.h"

#define N 300

Test(keyset, has_what_was_added_and_not_removed)
{
	struct keyset s = { .bytes = 2 * sizeof(uint32_t) };
	bool in[N] = { false };
	uint32_t x = 1;

	for (int step = 0; step < 5000; step++) {
		uint32_t key[2];

		x = x * UINT32_C(1664525) + UINT32_C(1013904223);
		key[0] = 7;
		key[1] = (x >> 8) % N;
		in[key[1]] = x >> 31;
		if (x >> 31)
			keyset_add(&s, key);
		else
			keyset_remove(&s, key);
		key[1] = (x >> 12) % N;
		cr_assert_eq(keyset_has(&s, key), in[key[1]], "step %d", step);
		key[0] = 8;
		cr_assert_not(keyset_has(&s, key), "another first half");
	}
	keyset_clear(&s);
	for (uint32_t i = 0; i < N; i++)
		cr_expect_not(keyset_has(&s, (uint32_t[]){ 7, i }));
}
