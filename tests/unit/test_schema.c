#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/wire/mp.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define NOW (INT64_C(1795274430) * GPUQ_US_PER_S)

struct inner {
	const char *name;
	int64_t n;
};

struct thing {
	bool flag;
	int64_t count, limit, time_us, bytes, milli, at_us;
	const char *text, *name;
	int colour, signal;
	struct gpuq_strlist list;
	struct gpuq_strmap map;
	struct inner in;
	struct inner *ptr;
	struct gpuq_objects many;
	struct gpuq_val *any;
	int64_t twice;
};

static const char *const colours[] = { "red", "green", "blue", NULL };

static void inner_defaults(void *obj)
{
	((struct inner *)obj)->n = 5;
}

static const struct gpuq_field inner_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_NAME,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct inner, name) },
	{ .key = "n", .kind = GPUQ_K_INT, .offset = offsetof(struct inner, n), .min = 1, .max = 9 },
	{ .key = NULL },
};
static const struct gpuq_schema inner_schema = { .name = "part",
						 .size = sizeof(struct inner),
						 .fields = inner_fields,
						 .defaults = inner_defaults };

static const struct gpuq_field loose_fields[] = {
	{ .key = "n", .kind = GPUQ_K_INT, .offset = offsetof(struct inner, n) },
	{ .key = NULL },
};
static const struct gpuq_schema loose_schema = { .name = "loose part",
						 .size = sizeof(struct inner),
						 .fields = loose_fields,
						 .defaults = inner_defaults };

/* A number that is written as its double. */
static int read_twice(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	if (v->type != GPUQ_INT || v->i % 2)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected an even number");
	*(int64_t *)out = v->i / 2;
	return 0;
}

static struct gpuq_val *write_twice(struct gpuq_arena *a, const void *in)
{
	const int64_t i = *(const int64_t *)in;

	return i ? gpuq_int(a, i * 2) : NULL;
}

static const struct gpuq_custom twice = { read_twice, write_twice };

static void thing_defaults(void *obj)
{
	struct thing *t = obj;

	t->count = 1;
	t->limit = GPUQ_UNLIMITED;
	t->in.n = 6; /* what a thing's own part has unless it says otherwise */
}

static int thing_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct thing *t = obj;

	if (t->flag && t->count > 1)
		return gpuq_reader_fail(r, gpuq_get(v, "count"), GPUQ_EINVAL,
					"a flagged thing is one");
	return 0;
}

#define F(k, K, m, ...)                                                                            \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_##K, .offset = offsetof(struct thing, m), __VA_ARGS__     \
	}
static const struct gpuq_field thing_fields[] = {
	F("flag", BOOL, flag),
	F("count", INT, count, .min = 1, .max = 100),
	F("limit", LIMIT, limit, .min = 0, .max = 50),
	F("time", DURATION, time_us, .min = 1000, .max = INT64_MAX),
	F("memory", BYTES, bytes, .min = 0, .max = INT64_C(1) << 40),
	F("cpus", MILLI, milli),
	F("begin", INSTANT, at_us),
	F("text", STR, text, .min = 0, .max = 10),
	F("name", NAME, name),
	F("colour", ENUM, colour, .names = colours),
	F("signal", SIGNAL, signal),
	F("list", STRLIST, list, .min = 0, .max = 3),
	F("map", STRMAP, map),
	F("in", OBJECT, in, .sub = &loose_schema),
	F("ptr", OBJECT_PTR, ptr, .sub = &inner_schema),
	F("many", OBJECTS, many, .sub = &inner_schema),
	F("any", VAL, any),
	F("twice", CUSTOM, twice, .custom = &twice),
	{ .key = NULL },
};
static const struct gpuq_schema thing_schema = { .name = "thing",
						 .size = sizeof(struct thing),
						 .fields = thing_fields,
						 .defaults = thing_defaults,
						 .check = thing_check };

static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);

static struct gpuq_val *yaml(const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&arena, "f", text, strlen(text), &docs, &n, &err), 0, "%s",
		     err.text);
	cr_assert_eq(n, 1);
	return docs[0];
}

static int read_thing(const struct gpuq_val *v, const char *file, bool lenient, struct thing *t,
		      struct gpuq_err *err)
{
	struct gpuq_reader r = {
		.arena = &arena, .file = file, .now_us = NOW, .lenient = lenient, .err = err
	};
	int rc = gpuq_schema_read(&r, &thing_schema, v, t);

	cr_expect_str_eq(r.path, "", "the path is put back");
	return rc;
}

static const char full[] =
	"flag: false\ncount: 7\nlimit: 20\ntime: 1d12h\nmemory: 1.5Gi\ncpus: 0.5\n"
	"begin: now+1m\ntext: 010.5.3\nname: a-b.c\ncolour: blue\nsignal: SIGUSR1\n"
	"list: [x, 5, 1.50]\nmap: {A: 1, B: yes please, C: true, D: , E: 0x10}\nin: {n: 3}\n"
	"ptr: {name: p}\nmany: [{name: q, n: 2}, {name: r}]\nany: [1, {x: y}]\ntwice: 8\n";

Test(schema, reads_every_kind)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct thing t;
	const struct inner *many;

	cr_assert_eq(read_thing(yaml(full), "f", false, &t, &err), 0, "%s", err.text);
	cr_expect(!t.flag && t.count == 7 && t.limit == 20);
	cr_expect_eq(t.time_us, INT64_C(36) * 3600 * GPUQ_US_PER_S);
	cr_expect_eq(t.bytes, INT64_C(3) << 29);
	cr_expect_eq(t.milli, 500);
	cr_expect_eq(t.at_us, NOW + 60 * GPUQ_US_PER_S);
	cr_expect_str_eq(t.text, "010.5.3");
	cr_expect_str_eq(t.name, "a-b.c");
	cr_expect(t.colour == 2 && t.signal == 10);
	cr_assert_eq(t.list.n, 3);
	cr_expect_str_eq(t.list.items[1], "5");
	cr_expect_str_eq(t.list.items[2], "1.50", "a number keeps its spelling");
	cr_assert_eq(t.map.n, 5);
	cr_expect_str_eq(t.map.keys[1], "B");
	cr_expect_str_eq(t.map.vals[1], "yes please");
	cr_expect_str_eq(t.map.vals[2], "true");
	cr_expect_str_eq(t.map.vals[3], "");
	cr_expect_str_eq(t.map.vals[4], "0x10");
	cr_expect_eq(t.in.n, 3);
	cr_expect_str_eq(t.ptr->name, "p");
	cr_expect_eq(t.ptr->n, 5, "the part's own default");
	cr_assert_eq(t.many.n, 2);
	many = t.many.items;
	cr_expect(many[0].n == 2 && many[1].n == 5);
	cr_expect_str_eq(many[1].name, "r");
	cr_expect_eq(t.any->n, 2);
	cr_expect_eq(t.twice, 4);
	gpuq_arena_done(&arena);
}

Test(schema, what_is_absent_or_null_has_its_default)
{
	static const char *const texts[] = { "{}", "{count: null, in: , many: ~, name: }" };

	for (size_t i = 0; i < N(texts); i++) {
		struct thing t;

		cr_assert_eq(read_thing(yaml(texts[i]), "f", false, &t, NULL), 0);
		cr_expect(t.count == 1 && t.limit == GPUQ_UNLIMITED && t.in.n == 6);
		cr_expect(!t.ptr && !t.name && t.many.n == 0 && t.list.n == 0);
	}
	gpuq_arena_done(&arena);
}

Test(schema, refuses_with_place_and_path)
{
	static const struct {
		const char *text;
		int rc;
		const char *field, *want;
	} cases[] = {
		{ "cuont: 1", GPUQ_EINVAL, "cuont",
		  "f:1:1: cuont: unknown key; did you mean 'count'?" },
		{ "Count: 1", GPUQ_EINVAL, "Count",
		  "f:1:1: Count: unknown key; did you mean 'count'?" },
		{ "wholly: 1", GPUQ_EINVAL, "wholly", "f:1:1: wholly: unknown key of a thing" },
		{ "[1]", GPUQ_EINVAL, "", "f:1:1: expected a map, found a list" },
		{ "flag: 1", GPUQ_EINVAL, "flag",
		  "f:1:7: flag: expected true or false, found '1'" },
		{ "count: x", GPUQ_EINVAL, "count",
		  "f:1:8: count: expected an integer, found 'x'" },
		{ "count: '1'", GPUQ_EINVAL, "count",
		  "f:1:8: count: expected an integer, found '1'" },
		{ "count: 1.0", GPUQ_EINVAL, "count",
		  "f:1:8: count: expected an integer, found '1.0'" },
		{ "count: []", GPUQ_EINVAL, "count",
		  "f:1:8: count: expected an integer, found a list" },
		{ "count: 0", GPUQ_ERANGE, "count", "f:1:8: count: expected 1 to 100, found 0" },
		{ "count: 99999999999999999999", GPUQ_EINVAL, "count",
		  "f:1:8: count: expected an integer, found '99999999999999999999'" },
		{ "limit: -1", GPUQ_ERANGE, "limit", "f:1:8: limit: expected 0 to 50, found -1" },
		{ "limit: none", GPUQ_EINVAL, "limit",
		  "f:1:8: limit: expected an integer or unlimited, found 'none'" },
		{ "time: soon", GPUQ_EINVAL, "time", "f:1:7: time: 'soon' is not a duration" },
		{ "time: 0", GPUQ_ERANGE, "time", "f:1:7: time: expected at least 1ms, found 0s" },
		{ "time: 1.5", GPUQ_EINVAL, "time", "f:1:7: time: '1.5' is not a duration" },
		{ "memory: 2Ti", GPUQ_ERANGE, "memory",
		  "f:1:9: memory: expected 0 to 1Ti, found 2Ti" },
		{ "memory: 5GB", GPUQ_EINVAL, "memory", "f:1:9: memory: '5GB' is not a size" },
		{ "cpus: -1", GPUQ_EINVAL, "cpus",
		  "f:1:7: cpus: a quantity must not be negative ('-1')" },
		{ "cpus: {}", GPUQ_EINVAL, "cpus", "f:1:7: cpus: expected a quantity" },
		{ "begin: later", GPUQ_EINVAL, "begin", "f:1:8: begin: 'later' is not a time" },
		{ "text: 12345678901", GPUQ_ERANGE, "text",
		  "f:1:7: text: expected 0 to 10 bytes, found 11" },
		{ "text: true", GPUQ_EINVAL, "text",
		  "f:1:7: text: expected text, found 'true': quote it if text is meant" },
		{ "text: [a]", GPUQ_EINVAL, "text", "f:1:7: text: expected text, found a list" },
		{ "name: -x", GPUQ_EINVAL, "name",
		  "f:1:7: name: expected a name of at most 63 letters" },
		{ "name: a/b", GPUQ_EINVAL, "name",
		  "f:1:7: name: expected a name of at most 63 letters" },
		{ "name: ''", GPUQ_EINVAL, "name",
		  "f:1:7: name: expected a name of at most 63 letters" },
		{ "colour: gren", GPUQ_EINVAL, "colour",
		  "f:1:9: colour: 'gren' is not known; did you mean 'green'?" },
		{ "colour: pink", GPUQ_EINVAL, "colour",
		  "f:1:9: colour: expected red, green or blue, found 'pink'" },
		{ "colour: {}", GPUQ_EINVAL, "colour",
		  "f:1:9: colour: expected red, green or blue, found a map" },
		{ "signal: USR3", GPUQ_EINVAL, "signal", "f:1:9: signal: expected a signal" },
		{ "list: [a, [b]]", GPUQ_EINVAL, "list[1]",
		  "f:1:11: list[1]: expected text, found a list" },
		{ "list: [a, b, c, d]", GPUQ_ERANGE, "list",
		  "f:1:7: list: expected 0 to 3 of them, found 4" },
		{ "list: {a: b}", GPUQ_EINVAL, "list", "f:1:7: list: expected a list of strings" },
		{ "map: [a]", GPUQ_EINVAL, "map", "f:1:6: map: expected a map of strings" },
		{ "map: {A: [1]}", GPUQ_EINVAL, "map.A",
		  "f:1:10: map.A: expected text, found a list" },
		{ "in: {m: 3}", GPUQ_EINVAL, "in.m", "f:1:6: in.m: unknown key of a loose part" },
		{ "ptr: {n: 3}", GPUQ_EINVAL, "ptr.name",
		  "f:1:6: ptr.name: missing; a part needs it" },
		{ "many: {name: x}", GPUQ_EINVAL, "many", "f:1:7: many: expected a list of maps" },
		{ "many:\n- name: a\n- {name: b, n: 10}\n", GPUQ_ERANGE, "many[1].n",
		  "f:3:16: many[1].n: expected 1 to 9, found 10" },
		{ "many:\n- name: a\n- name: b\n- name: a\n", GPUQ_EINVAL, "many[2].name",
		  "f:4:3: many[2].name: 'a' names an earlier one" },
		{ "twice: 3", GPUQ_EINVAL, "twice", "f:1:8: twice: expected an even number" },
		{ "flag: true\ncount: 2\n", GPUQ_EINVAL, "", "f:2:8: a flagged thing is one" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct gpuq_val *v = yaml(cases[i].text);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct thing t, untouched;
		int rc;

		memset(&t, 0x5a, sizeof(t));
		memset(&untouched, 0x5a, sizeof(t));
		rc = read_thing(v, "f", false, &t, &err);
		cr_expect_eq(rc, cases[i].rc, "%s: %d %s", cases[i].text, rc, err.text);
		cr_expect_eq(strncmp(err.text, cases[i].want, strlen(cases[i].want)), 0,
			     "\n%s\ngot  %s\nwant %s", cases[i].text, err.text, cases[i].want);
		cr_expect_str_eq(err.field, cases[i].field, "%s: %s", cases[i].text, err.field);
		cr_expect_eq(memcmp(&t, &untouched, sizeof(t)), 0, "%s", cases[i].text);
		cr_expect_eq(read_thing(v, "f", false, &t, NULL), cases[i].rc);
	}
	gpuq_arena_done(&arena);
}

Test(schema, over_the_wire_there_are_paths_only)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = gpuq_map(&arena);
	struct thing t;

	gpuq_put(&arena, v, "future", gpuq_int(&arena, 1));
	gpuq_put(&arena, v, "cpus", gpuq_real(&arena, 0.1));
	gpuq_put(&arena, v, "begin", gpuq_int(&arena, 77));
	gpuq_put(&arena, v, "time", gpuq_int(&arena, 90));
	gpuq_put(&arena, v, "memory", gpuq_int(&arena, 12));
	cr_assert_eq(read_thing(v, NULL, true, &t, &err), 0, "%s", err.text);
	cr_expect(t.milli == 100 && t.at_us == 77 && t.bytes == 12);
	cr_expect_eq(t.time_us, 90 * 60 * GPUQ_US_PER_S);

	cr_expect_eq(read_thing(v, NULL, false, &t, &err), GPUQ_EINVAL);
	cr_expect_str_eq(err.text, "future: unknown key of a thing");

	gpuq_unset(v, "future");
	gpuq_set(&arena, v, "text", gpuq_strn(&arena, "a\0b", 3));
	cr_expect_eq(read_thing(v, NULL, true, &t, &err), GPUQ_EINVAL);
	cr_expect_str_eq(err.text, "text: text holds the character NUL");
	gpuq_set(&arena, v, "text", gpuq_int(&arena, 5));
	cr_expect_eq(read_thing(v, NULL, true, &t, &err), GPUQ_EINVAL);
	cr_expect_str_eq(err.text, "text: expected text, found an integer");
	gpuq_unset(v, "text");
	gpuq_set(&arena, v, "cpus", gpuq_real(&arena, -0.1));
	cr_expect_eq(read_thing(v, NULL, true, &t, &err), GPUQ_ERANGE);
	gpuq_set(&arena, v, "cpus", gpuq_real(&arena, 1e300));
	cr_expect_eq(read_thing(v, NULL, true, &t, &err), GPUQ_ERANGE);
	gpuq_arena_done(&arena);
}

Test(schema, writes_what_reads_back)
{
	static const struct gpuq_mp_limits lim = { 1 << 20, 24, 1000 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val *v, *back = NULL;
	struct thing t, u;

	cr_assert_eq(read_thing(yaml(full), "f", false, &t, &err), 0, "%s", err.text);
	t.at_us += 1; /* not a whole millisecond */
	v = gpuq_schema_write(&arena, &thing_schema, &t);
	gpuq_json_write(&b, v, 0);
	cr_expect_str_eq(
		gpuq_buf_str(&b),
		"{\"count\":7,\"limit\":20,\"time\":\"1d12h\",\"memory\":\"1536Mi\",\"cpus\":0.5,"
		"\"begin\":\"2026-11-21T15:21:30.000001Z\",\"text\":\"010.5.3\",\"name\":\"a-b.c\","
		"\"colour\":\"blue\",\"signal\":\"USR1\",\"list\":[\"x\",\"5\",\"1.50\"],"
		"\"map\":{\"A\":\"1\",\"B\":\"yes "
		"please\",\"C\":\"true\",\"D\":\"\",\"E\":\"0x10\"},"
		"\"in\":{\"n\":3},\"ptr\":{\"name\":\"p\"},\"many\":[{\"name\":\"q\",\"n\":2},"
		"{\"name\":\"r\"}],\"any\":[1,{\"x\":\"y\"}],\"twice\":8}");
	/* Once around over the wire, strictly read. */
	gpuq_buf_clear(&b);
	gpuq_mp_write(&b, v);
	cr_assert_eq(gpuq_mp_read(&arena, &lim, b.data, b.len, &back, &err), 0, "%s", err.text);
	cr_assert_eq(read_thing(back, NULL, false, &u, &err), 0, "%s", err.text);
	cr_expect_eq(u.at_us, t.at_us);
	cr_expect(gpuq_val_equal(v, gpuq_schema_write(&arena, &thing_schema, &u)));

	cr_assert_eq(read_thing(yaml("{}"), "f", false, &t, &err), 0);
	v = gpuq_schema_write(&arena, &thing_schema, &t);
	cr_expect(v && v->n == 0, "defaults are left out");
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
}

Test(schema, a_full_arena_is_an_error)
{
	struct gpuq_val *v = yaml(full);
	bool was_read = false, was_written = false;

	for (size_t room = 16; room < 16384; room += 16) {
		struct gpuq_arena small = GPUQ_ARENA_INIT(room);
		struct gpuq_reader r = { .arena = &small, .now_us = NOW };
		struct thing t;
		int rc = gpuq_schema_read(&r, &thing_schema, v, &t);

		cr_assert(rc == 0 || rc == GPUQ_ENOMEM, "room %zu: %d", room, rc);
		was_read = rc == 0;
		if (rc == 0)
			was_written = gpuq_schema_write(&small, &thing_schema, &t) != NULL;
		gpuq_arena_done(&small);
	}
	cr_assert(was_read && was_written);
	gpuq_arena_done(&arena);
}

Test(nearest, names_what_was_meant_or_nothing)
{
	static const char *const names[] = { "gpus", "gpu_memory", "queue", "q", "time", NULL };
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "gpu", "gpus" },   { "GPUS", "gpus" },     { "gpsu", "gpus" },
		{ "quue", "queue" }, { "queueue", "queue" }, { "gpumemory", "gpu_memory" },
		{ "tiem", "time" },  { "qq", NULL },         { "x", NULL },
		{ "", NULL },        { "nothing", NULL },    { "memory", NULL },
	};
	char huge[200];

	for (size_t i = 0; i < N(cases); i++) {
		const char *got = gpuq_nearest(cases[i].name, names);

		cr_expect((got && cases[i].want && strcmp(got, cases[i].want) == 0) ||
				  (!got && !cases[i].want),
			  "%s: %s", cases[i].name, got ? got : "-");
	}
	memset(huge, 'q', sizeof(huge));
	huge[sizeof(huge) - 1] = '\0';
	cr_expect_null(gpuq_nearest(huge, names));
}
