/* The structures that keep many jobs small: the open table, packed keys, shared blocks. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/util/hash.h"
#include "gpuqd/state/record/keys.h"
#include "gpuqd/util/blob.h"
#include "gpuqd/util/table.h"

#define N_THINGS 5000u

struct thing {
	uint32_t key;
	bool there;
};

static struct thing things[N_THINGS];

/* Few homes, so that runs of what was displaced are long. */
static uint32_t crowded(const void *item)
{
	return ((const struct thing *)item)->key % 37 * 11;
}

static uint32_t spread(const void *item)
{
	return hash_mix(((const struct thing *)item)->key * UINT64_C(0x9e3779b97f4a7c15));
}

static const struct thing *look_up(const struct slots *s, uint32_t key, slots_hash_fn hash)
{
	const struct thing like = { key, true }, *it;

	table_each(s, hash(&like), it)
		if (it->key == key)
			return it;
	return NULL;
}

static void come_and_go(slots_hash_fn hash, uint32_t n, int rounds)
{
	struct slots s = { 0 };
	uint64_t seed = 1;
	uint32_t n_there = 0;

	for (uint32_t i = 0; i < n; i++)
		things[i] = (struct thing){ i, false };
	for (int i = 0; i < rounds; i++) {
		struct thing *t;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		t = &things[(seed >> 33) % n];
		if (t->there)
			table_remove(&s, t, hash);
		else
			table_add(&s, t, hash);
		t->there = !t->there;
		n_there += t->there ? 1 : UINT32_MAX;
		cr_assert_eq(s.n, n_there);
		for (uint32_t k = 0; k < n; k += i % 1000 ? n : 1)
			cr_assert_eq(look_up(&s, things[k].key, hash) == &things[k],
				     things[k].there, "thing %u after %d steps", k, i);
	}
	table_done(&s);
}

Test(slots, those_that_are_there_are_found)
{
	come_and_go(crowded, 40, 20000);
	come_and_go(spread, N_THINGS, 20000);
}

Test(slots, room_that_was_made_is_kept)
{
	struct slots s = { 0 };
	uint32_t room;

	cr_expect_null(look_up(&s, 1, spread), "there is no table yet");
	table_reserve(&s, 1000, spread);
	room = s.room;
	for (uint32_t i = 0; i < 1000; i++) {
		things[i] = (struct thing){ i, true };
		table_add(&s, &things[i], spread);
	}
	cr_expect_eq(s.room, room);
	table_done(&s);
}

/* ---- keys ---- */

struct gone {
	uint32_t n;
	int64_t newest_us;
};

static void on_gone(void *arg, const struct idem_key *k)
{
	struct gone *g = arg;

	g->n++;
	g->newest_us = k->at_us > g->newest_us ? k->at_us : g->newest_us;
}

/* In any order, as they come from the store. */
static int64_t time_of(uint32_t i)
{
	return (int64_t)(i * 7919u % 10000u);
}

static size_t text_of(uint32_t i, char text[32])
{
	return (size_t)snprintf(text, 32, "ann%ckey-%u", '\0', i);
}

Test(keys, are_found_until_they_expire)
{
	struct keys k = { 0 };
	struct gone gone = { 0 };
	char text[32];

	for (uint32_t i = 0; i < 10000; i++) {
		struct idem_key *it = keys_add(&k, text, text_of(i, text), time_of(i));

		it->first_id = i;
	}
	keys_expire(&k, 3999, on_gone, &gone);
	cr_expect_eq(gone.n, 4000);
	cr_expect_eq(gone.newest_us, 3999);
	cr_expect_eq(k.slots.n, 6000);
	for (uint32_t i = 0; i < 10000; i++) {
		const struct idem_key *it = keys_find(&k, text, text_of(i, text));

		cr_assert_eq(it != NULL, time_of(i) >= 4000, "key %u", i);
		cr_assert(!it || (it->first_id == i && it->at_us == time_of(i)));
	}
	cr_expect_null(keys_find(&k, "ann", 3));
	keys_add(&k, "new", 3, 20000);
	keys_expire(&k, 10000, on_gone, &gone);
	cr_expect_eq(gone.n, 10000);
	cr_expect_eq(k.slots.n, 1);
	cr_expect_eq(k.first, k.last, "what it took is given back");
	keys_expire(&k, 20000, on_gone, &gone);
	cr_expect_null(k.first);
	cr_expect_null(k.last);
	cr_expect_not_null(keys_add(&k, "more", 4, 20001));
	keys_done(&k);
}

/* ---- blocks ---- */

Test(shared, equal_ones_that_come_close_together_are_one)
{
	struct shared s = { NULL };
	const char *a = blob_get(&s, "name", 5), *b = blob_get(&s, "name", 5);
	const char *c = blob_get(&s, "names", 6);

	cr_expect_eq(a, b);
	cr_expect_neq(a, c);
	cr_expect_str_eq(c, "names");
	cr_expect_eq((uintptr_t)a % 8, 0, "a struct may stand there");
	blob_put(&s, a);
	cr_expect_str_eq(b, "name", "it stays until the last has put it");
	cr_expect_eq(blob_more(b), b);
	blob_put(&s, b);
	blob_put(&s, b);
	blob_put(&s, c);
	blob_put(&s, NULL);
	cr_expect_null(blob_more(NULL));
	blob_done(&s);
}

/* Many more than are remembered: each is given back once, whoever took its place. */
Test(shared, those_that_are_forgotten_are_given_back)
{
	struct shared s = { NULL };
	const uint32_t *all[20000];

	for (uint32_t i = 0; i < 20000; i++)
		all[i] = blob_get(&s, &i, sizeof(i));
	for (uint32_t i = 0; i < 20000; i++) {
		cr_assert_eq(*all[i], i);
		blob_put(&s, all[i]);
	}
	blob_done(&s);
}
