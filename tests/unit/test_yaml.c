#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/yaml.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);

/* All documents as JSON, one a line. */
static const char *json(struct gpuq_val **docs, size_t n)
{
	static struct gpuq_buf b;

	gpuq_buf_clear(&b);
	for (size_t i = 0; i < n; i++) {
		if (i)
			gpuq_buf_addc(&b, '\n');
		gpuq_json_write(&b, docs[i], 0);
	}
	return gpuq_buf_str(&b);
}

Test(yaml, reads)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\"]}" },
		{ "{\"a\": {\"b\": [1, -2.5, true, null]}}", "{\"a\":{\"b\":[1,-2.5,true,null]}}" },
		{ "\xef\xbb\xbf"
		  "a: 1",
		  "{\"a\":1}" }, /* a byte order mark */
		{ "", "" },
		{ "# nothing\n", "" },
		{ "---\n---\na: 1\n---\n# only this\n...\n---\nb\n", "{\"a\":1}\n\"b\"" },
		{ "null", "null" },
		{ "- ~\n- Null\n- NULL\n-\n", "[null,null,null,null]" },
		{ "[true, True, FALSE, 'true', tRUE]", "[true,true,false,\"true\",\"tRUE\"]" },
		{ "[0, -0, +7, 12, 0o17, 0x1F, 9223372036854775807]",
		  "[0,0,7,12,15,31,9223372036854775807]" },
		{ "[1.5, .5, 5., 1e3, -1E-2]", "[1.5,0.5,5.0,1000.0,-0.01]" },
		{ "[1.2.3, 1e, ., -, 0x, 0b1, 1_000, 12h, '012']",
		  "[\"1.2.3\",\"1e\",\".\",\"-\",\"0x\",\"0b1\",\"1_000\",\"12h\",\"012\"]" },
		/* Times and dates are text for the schema, not numbers to base 60. */
		{ "[1:30:00, 2026-12-01T09:00Z, 1-12:30]",
		  "[\"1:30:00\",\"2026-12-01T09:00Z\",\"1-12:30\"]" },
		/* Keys are text, whatever they look like. */
		{ "on: 1\n1: 2\nnull: 3\n012: 4\n", "{\"on\":1,\"1\":2,\"null\":3,\"012\":4}" },
		{ "'<<': 1", "{\"<<\":1}" },
		{ "a: |\n  x\n   y\nb: >\n  p\n  q\n", "{\"a\":\"x\\n y\\n\",\"b\":\"p q\\n\"}" },
		{ "a: &anchor 1", "{\"a\":1}" },
		{ "%YAML 1.2\n---\na: 1\n", "{\"a\":1}" },
		{ "\"\\u00e9\\x41\\/\"", "\"\xc3\xa9"
					 "A/\"" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_val **docs = NULL;
		size_t n = 0;
		int rc = gpuq_yaml_parse(&arena, "f", cases[i].text, strlen(cases[i].text), &docs,
					 &n, &err);

		cr_expect_eq(rc, 0, "%s: %s", cases[i].text, err.text);
		if (rc == 0)
			cr_expect_str_eq(json(docs, n), cases[i].want, "%s", cases[i].text);
	}
	gpuq_arena_done(&arena);
}

Test(yaml, refuses_with_line_and_column)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "a: 1\nb: 2\na: 3\n", "f:3:1: duplicate key 'a' (first at line 1)" },
		{ "x:\n- {p: 1, p: 2}\n", "f:2:10: duplicate key 'p'" },
		{ "<<: {a: 1}\n", "f:1:1: merge keys" },
		{ "a: &x 1\nb: *x\n", "f:2:4: aliases (*x)" },
		{ "a: !!str 5\n", "f:1:4: the tag tag:yaml.org,2002:str" },
		{ "a: !mine {}\n", "f:1:4: the tag !mine" },
		{ "a: yes", "f:1:4: 'yes' is ambiguous" },
		{ "[No, 1]", "f:1:2: 'No' is ambiguous" },
		{ "a:\n  b: ON\n", "f:2:6: 'ON' is ambiguous" },
		{ "a: off", "f:1:4: 'off' is ambiguous" },
		{ "mode: 0644", "f:1:7: '0644' starts with 0" },
		{ "a: -01", "f:1:4: '-01' starts with 0" },
		{ "a: .inf", "f:1:4: '.inf' is not a number" },
		{ "a: .NaN", "f:1:4: '.NaN' is not a number" },
		{ "a: 6e12345", "f:1:4: '6e12345' is not a number in range" },
		{ "a: 0xfffffffffffffffff", "f:1:4: '0xfffffffffffffffff' is too large" },
		{ "a: \"x\\0y\"", "f:1:4: a string holds the character NUL" },
		{ "? [1]\n: 2\n", "f:1:3: a key must be text, not a list" },
		{ "{{ .Values.x }}: 1", "f:1:1: a key must be text, not a map" },
		{ "a: 1\n\tb: 2\n", "f:2:1: not valid YAML: the line is indented with a tab" },
		{ "a: b: c\n", "f:1:5: not valid YAML: mapping values are not allowed" },
		{ "a: [1, 2\nb: 3\n", "f:2:2: not valid YAML:" },
		{ "a: 'x", "f:1:6: not valid YAML:" },
		{ "a: 1\nb: \xff\n", "f:2:4: not UTF-8" },
		{ "a: @x", "f:1:4: not valid YAML:" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_val **docs = NULL;
		size_t n = 77;
		int rc = gpuq_yaml_parse(&arena, "f", cases[i].text, strlen(cases[i].text), &docs,
					 &n, &err);

		cr_expect_eq(rc, GPUQ_EINVAL, "%s", cases[i].text);
		cr_expect_eq(strncmp(err.text, cases[i].want, strlen(cases[i].want)), 0,
			     "%s\ngot  %s\nwant %s", cases[i].text, err.text, cases[i].want);
		cr_expect(docs == NULL && n == 77, "outputs are left alone");
	}
	gpuq_arena_done(&arena);
}

static int parse_repeated(const char *head, const char *part, size_t times, struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val **docs;
	size_t n;
	int rc;

	gpuq_buf_adds(&b, head);
	for (size_t i = 0; i < times; i++)
		gpuq_buf_adds(&b, part);
	rc = gpuq_yaml_parse(&arena, "-", b.data ? b.data : "", b.len, &docs, &n, err);
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
	return rc;
}

Test(yaml, keeps_to_its_limits)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_expect_eq(parse_repeated("", "[", 40000, &err), GPUQ_EINVAL);
	cr_expect_str_eq(err.text, "(standard input):1:33: nested deeper than 32 levels");
	cr_expect_eq(parse_repeated("", "- ", 33, &err), GPUQ_EINVAL);
	cr_expect_eq(parse_repeated("", "- ", 32, &err), 0);
	cr_expect_eq(parse_repeated("", "- 1\n", GPUQ_YAML_NODES_MAX - 1, &err), 0);
	cr_expect_eq(parse_repeated("", "- 1\n", GPUQ_YAML_NODES_MAX, &err), GPUQ_ETOOBIG);
	cr_expect_eq(parse_repeated("", "---\na: 1\n", GPUQ_DOCS_MAX, &err), 0);
	cr_expect_eq(parse_repeated("", "---\na: 1\n", GPUQ_DOCS_MAX + 1, &err), GPUQ_ETOOBIG);
	cr_expect_eq(parse_repeated("", "#", GPUQ_YAML_BYTES_MAX, &err), 0);
	cr_expect_eq(parse_repeated("", "#", GPUQ_YAML_BYTES_MAX + 1, &err), GPUQ_ETOOBIG);
}

static int parse_jobs(const char *text, struct gpuq_val ***docs, size_t *n, struct gpuq_err *err)
{
	return gpuq_yaml_parse_jobs(&arena, "f", text, strlen(text), docs, n, err);
}

Test(yaml, files_of_jobs_have_aliases_merge_keys_and_octal)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "a: &x {b: 1}\nc: *x\nd: [*x, *x]\n",
		  "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"d\":[{\"b\":1},{\"b\":1}]}" },
		{ "a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}" },
		/* The map's own keys win, then the earlier map. */
		{ "a: &x {p: 1, q: 2}\nb:\n  q: 3\n  <<: *x\n",
		  "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"q\":3,\"p\":1}}" },
		{ "{<<: [{p: 1}, {p: 2, q: 3}], r: 4}", "{\"r\":4,\"p\":1,\"q\":3}" },
		{ "<<: {p: 1}\n<<: {q: 2}\n", "{\"p\":1,\"q\":2}" },
		{ "{'<<': 1}", "{\"<<\":1}" },
		{ "apiVersion: v1\nm: [0755, 0o755, 00]\n",
		  "{\"apiVersion\":\"v1\",\"m\":[493,493,0]}" },
	};
	static const struct {
		const char *text, *want;
	} refused[] = {
		{ "a: *x\n", "f:1:4: no value above is named &x in this document" },
		{ "a: &x 1\n---\nb: *x\n", "f:3:4: no value above is named &x in this document" },
		{ "a: &x {b: *x}\n", "f:1:11: the alias *x contains itself" },
		{ "<<: 1\n", "f:1:1: <<: expected a map or a list of maps" },
		{ "<<: [{a: 1}, b]\n", "f:1:1: <<: expected a map or a list of maps" },
		{ "a: &x 1\n*x : 2\n", "f:2:1: a key must be text, not an alias" },
		{ "mode: 0644\n", "f:1:7: '0644' starts with 0" },
		{ "apiVersion: v1\nm: 0844\n", "f:2:4: '0844' starts with 0" },
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n;

	for (size_t i = 0; i < N(cases); i++) {
		cr_expect_eq(parse_jobs(cases[i].text, &docs, &n, &err), 0, "%s: %s", cases[i].text,
			     err.text);
		cr_expect_str_eq(json(docs, n), cases[i].want, "%s", cases[i].text);
	}
	for (size_t i = 0; i < N(refused); i++) {
		cr_expect_lt(parse_jobs(refused[i].text, &docs, &n, &err), 0, "%s",
			     refused[i].text);
		cr_expect_eq(strncmp(err.text, refused[i].want, strlen(refused[i].want)), 0,
			     "got  %s\nwant %s", err.text, refused[i].want);
	}
	gpuq_arena_done(&arena);
}

/* head, then part so often; parsed as a file of jobs. */
static int repeat_jobs(const char *head, const char *part, size_t times, struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val **docs;
	size_t n;
	int rc;

	gpuq_buf_adds(&b, head);
	for (size_t i = 0; i < times; i++)
		gpuq_buf_adds(&b, part);
	rc = gpuq_yaml_parse_jobs(&arena, "f", b.data, b.len, &docs, &n, err);
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
	return rc;
}

Test(yaml, aliases_have_their_limits)
{
	static const char bomb[] = "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
				   "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
				   "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
				   "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
				   "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_expect_eq(repeat_jobs("a: &x 1\nb:\n", "- *x\n", 999, &err), 0, "%s", err.text);
	cr_expect_eq(repeat_jobs("a: &x 1\nb:\n", "- *x\n", 1000, &err), GPUQ_ETOOBIG);
	cr_expect_str_eq(err.text, "f:1002:3: more than 999 aliases");
	cr_expect_eq(repeat_jobs(bomb, "", 0, &err), GPUQ_ETOOBIG);
	cr_expect_str_eq(err.text, "f:5:20: more than 65536 values, aliases written out");
	cr_expect_eq(repeat_jobs("", "#\n", 2u << 20, &err), GPUQ_ETOOBIG);
	cr_expect_str_eq(err.text, "f: larger than 1048576 bytes");
	/* Levels count where the alias stands. */
	cr_expect_eq(repeat_jobs("- &x [[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]\n- "
				 "[[[[[[[[[[[*x]]]]]]]]]]]\n",
				 "", 0, &err),
		     GPUQ_EINVAL);
	cr_expect_not_null(strstr(err.text, "nested deeper than 32 levels"), "%s", err.text);
}

Test(yaml, keeps_places_and_what_was_written)
{
	const char *text = "a: 0x10\nb:\n  c: [1.50, 'q']\n";
	struct gpuq_val **docs, *v;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&arena, "f", text, strlen(text), &docs, &n, NULL), 0);
	v = gpuq_get(docs[0], "a");
	cr_expect(v->at.line == 1 && v->at.col == 4 && v->plain);
	cr_expect_str_eq(v->src, "0x10");
	v = gpuq_path(docs[0], "b", "c", NULL);
	cr_expect(v->at.line == 3 && v->at.col == 6);
	cr_expect_str_eq(v->items[0]->src, "1.50");
	cr_expect(!v->items[1]->plain && v->items[1]->at.col == 13);
	cr_expect(docs[0]->pairs[1].at.line == 2 && docs[0]->pairs[1].at.col == 1);
	gpuq_arena_done(&arena);
}

Test(yaml, a_full_arena_is_an_error)
{
	const char *text = "a: 1\nb: [x, {c: 2.5}]\n";
	bool worked = false;

	for (size_t room = 16; room < 8192; room += 16) {
		struct gpuq_arena small = GPUQ_ARENA_INIT(room);
		struct gpuq_val **docs;
		size_t n;
		int rc = gpuq_yaml_parse(&small, "f", text, strlen(text), &docs, &n, NULL);

		cr_assert(rc == 0 || rc == GPUQ_ENOMEM, "room %zu: %d", room, rc);
		worked = rc == 0;
		gpuq_arena_done(&small);
	}
	cr_assert(worked);
}

static struct gpuq_val *awkward(void)
{
	static const char *const texts[] = {
		"plain",
		"two words",
		"yes",
		"on",
		"y",
		"null",
		"~",
		"",
		"12",
		"012",
		"1.5",
		"0x1f",
		"1:30:00",
		"12:30",
		"a: b",
		"a:",
		"a#b",
		"a #b",
		"- x",
		"-",
		"?",
		"*x",
		"&x",
		"!x",
		"%x",
		"@x",
		"`x",
		"{",
		"]",
		",",
		"'",
		"\"",
		"\\",
		" lead",
		"trail ",
		"a\nb",
		"a\nb\n",
		"a\nb\n\n",
		"\na",
		" a\nb",
		"\ta\nb",
		"a\n b\n  \n\tc\n",
		"a\r\nb",
		"tab\there",
		"---",
		"...",
		"caf\xc3\xa9",
		"\xe2\x80\xa8",
		"\xef\xbb\xbf",
		"\x1b[31m",
		"<<",
		"=",
		"~/x",
		"/a/b.c",
		"k=v",
		"x\n---\ny\n",
		"\xc3\xa9\n\xc3\xa9",
		"1e5",
		".5",
		"+1",
		"a  b",
		"#",
		"2026-12-01",
		"2026-12-01T09:00Z",
		"a\n\n\nb",
	};
	struct gpuq_val *m = gpuq_map(&arena), *l = gpuq_put(&arena, m, "l", gpuq_list(&arena));
	struct gpuq_val *k = gpuq_put(&arena, m, "k", gpuq_map(&arena)), *ll;

	for (size_t i = 0; i < N(texts); i++) {
		gpuq_add(&arena, l, gpuq_str(&arena, texts[i]));
		gpuq_put(&arena, k, texts[i], gpuq_str(&arena, texts[i]));
	}
	ll = gpuq_add(&arena, l, gpuq_list(&arena));
	gpuq_add(&arena, ll, gpuq_list(&arena));
	ll = gpuq_add(&arena, ll, gpuq_list(&arena));
	gpuq_add(&arena, ll, gpuq_str(&arena, "deep\ntext"));
	ll = gpuq_add(&arena, ll, gpuq_map(&arena));
	gpuq_put(&arena, ll, "p", gpuq_real(&arena, 1e300));
	gpuq_put(&arena, ll, "q", gpuq_map(&arena));
	gpuq_put(&arena, ll, "r", gpuq_bool(&arena, false));
	gpuq_put(&arena, ll, "s", gpuq_null(&arena));
	gpuq_put(&arena, ll, "t", gpuq_int(&arena, INT64_MIN));
	return m;
}

Test(yaml, reads_what_it_wrote)
{
	struct gpuq_val *v = awkward(), **docs;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t n;

	gpuq_yaml_write(&b, v);
	cr_assert_eq(gpuq_yaml_parse(&arena, "f", b.data, b.len, &docs, &n, &err), 0, "%s\n%s",
		     err.text, gpuq_buf_str(&b));
	cr_assert_eq(n, 1);
	cr_expect(gpuq_val_equal(v, docs[0]), "%s", gpuq_buf_str(&b));
	gpuq_buf_clear(&b);
	gpuq_json_write(&b, v, 2);
	cr_assert_eq(gpuq_yaml_parse(&arena, "f", b.data, b.len, &docs, &n, &err), 0, "%s",
		     err.text);
	cr_expect(gpuq_val_equal(v, docs[0]), "JSON reads back as well");
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
}

Test(yaml, writes_as_people_would)
{
	const char *text =
		"name: llama-ft\ncommand:\n- torchrun\n- train.py\nscript: |\n  #!/bin/sh\n"
		"  exit 0\ngroups:\n- name: a\n  env:\n    ON: \"yes\"\n  gpus: 0.5\nvolumes: "
		"[]\ntime: \"01:30:00\"\n";
	const char *want =
		"name: llama-ft\ncommand:\n  - torchrun\n  - train.py\nscript: |\n"
		"  #!/bin/sh\n  exit 0\ngroups:\n  - name: a\n    env:\n"
		"      \"ON\": \"yes\"\n    gpus: 0.5\nvolumes: []\ntime: \"01:30:00\"\n";
	struct gpuq_val **docs;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&arena, "f", text, strlen(text), &docs, &n, NULL), 0);
	gpuq_yaml_write(&b, docs[0]);
	cr_expect_str_eq(gpuq_buf_str(&b), want);
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
}
