/* HMAC-SHA-256: the test vectors of RFC 4231, and lengths around a block. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuq/slurm/mpi/hmac.h"

Test(hmac, vectors)
{
	static const struct {
		unsigned char key, n_key; /* that many times */
		const char *text, *want;
	} rows[] = {
		{ 0x0b, 20, "Hi There",
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ 0xaa, 131,
		  "This is a test using a larger than block-size key and a larger than block-size "
		  "data. The key needs to be hashed before being used by the HMAC algorithm.",
		  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};
	unsigned char key[131];
	char got[HMAC_HEX_BYTES];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(key, rows[i].key, sizeof(key));
		hmac_bytes(key, rows[i].n_key, rows[i].text, strlen(rows[i].text), got);
		cr_expect_str_eq(got, rows[i].want, "row %zu", i);
	}
	hmac_bytes("Jefe", 4, "what do ya want for nothing?", 28, got);
	cr_expect_str_eq(got, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

Test(hmac, words_count_with_their_ends)
{
	static const char *const ab_c[] = { "ab", "c", NULL }, *const a_bc[] = { "a", "bc", NULL };
	char one[HMAC_HEX_BYTES], two[HMAC_HEX_BYTES];

	hmac_words("key", ab_c, one);
	hmac_words("key", a_bc, two);
	cr_expect_str_neq(one, two);
	hmac_bytes("key", 3, "ab\0c", 5, two);
	cr_expect_str_eq(one, two);
}
