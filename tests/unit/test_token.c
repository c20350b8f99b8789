/* The text of tokens, and scopes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/rpc/token_text.h"
#include "gpuqd/util/scope.h"

Test(token, what_is_made_can_be_read_back)
{
	char text[TOKEN_TEXT_BYTES], other[TOKEN_TEXT_BYTES];
	struct token_text made, read;
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(token_text_new(text, &made, &err), 0);
	cr_assert_eq(strlen(text), TOKEN_TEXT_BYTES - 1);
	cr_assert(token_text_is(text));
	cr_assert_eq(token_text_read(text, &read, &err), 0, "%s", err.text);
	cr_assert_str_eq(read.id, made.id);
	cr_assert(token_text_same(read.hash, made.hash));
	cr_assert_eq(token_text_new(other, &read, &err), 0);
	cr_assert_str_neq(text, other);
	cr_assert_not(token_text_same(read.hash, made.hash));
}

Test(token, any_changed_character_and_any_cut_is_seen)
{
	char text[TOKEN_TEXT_BYTES], bad[TOKEN_TEXT_BYTES + 1];
	struct token_text made, read;
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(token_text_new(text, &made, &err), 0);
	for (size_t i = 0; i < TOKEN_TEXT_BYTES - 1; i++) {
		snprintf(bad, sizeof(bad), "%s", text);
		bad[i] = bad[i] == 'a' ? 'b' : 'a';
		cr_assert_eq(token_text_read(bad, &read, &err), GPUQ_EAUTH, "character %zu", i);
		snprintf(bad, sizeof(bad), "%.*s", (int)i, text);
		cr_assert_eq(token_text_read(bad, &read, &err), GPUQ_EAUTH, "cut at %zu", i);
	}
	snprintf(bad, sizeof(bad), "%sa", text);
	cr_assert_eq(token_text_read(bad, &read, &err), GPUQ_EAUTH);
}

Test(token, scopes_are_words_of_a_list)
{
	const char *good[] = { "read", "operate" }, *wrong[] = { "read", "all" };
	uint32_t bits = 0;
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(scope_parse(&(struct gpuq_strlist){ good, 2 }, &bits, &err), 0);
	cr_assert_eq(bits, SCOPE_READ | SCOPE_OPERATE);
	cr_assert_eq(scope_parse(&(struct gpuq_strlist){ wrong, 2 }, &bits, &err), GPUQ_EINVAL);
	cr_assert_str_eq(scope_word(SCOPE_NUMBER_SESSION), "session");
}
