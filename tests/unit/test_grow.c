#include <criterion/criterion.h>

#include "libgpuq/grow.h"

Test(grow, doubles_and_keeps_what_is_there)
{
	uint32_t *small = NULL, room32 = 0;
	size_t *large = NULL, room = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		cr_assert(grow_to(&small, &room32, i + 1));
		cr_assert(grow_to(&large, &room, (size_t)i + 1));
		small[i] = i;
		large[i] = i;
	}
	cr_expect_eq(room32, 1024);
	cr_expect_eq(room, 1024);
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert(small[i] == i && large[i] == i);
	cr_assert(grow_to(&large, &room, 5000));
	cr_expect_eq(room, 8192);
	cr_expect_eq(large[999], 999);
	free(small);
	free(large);
}

Test(grow, what_cannot_be_leaves_all_as_it_was)
{
	uint32_t *small = NULL, room32 = 0;
	size_t *large = NULL, *const none = NULL, room = 0;

	cr_assert(grow_to(&large, &room, 1));
	cr_expect_not(grow_to(&large, &room, SIZE_MAX));
	cr_expect_not(grow_to(&large, &room, SIZE_MAX / sizeof(*large)));
	cr_expect(large != none && room == GROW_FIRST);
	cr_expect_not(grow_to(&small, &room32, (size_t)UINT32_MAX));
	cr_expect(!small && room32 == 0);
	free(large);
}

Test(grow, in_an_arena_new_items_are_zero)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	int *items = NULL;
	size_t room = 0;

	cr_assert(grow_arena(&a, &items, &room, 3, sizeof(*items)));
	items[0] = 7;
	cr_assert(grow_arena(&a, &items, &room, 17, sizeof(*items)));
	cr_expect_eq(room, 32);
	cr_expect(items[0] == 7 && items[16] == 0 && items[31] == 0);
	gpuq_arena_done(&a);
}
