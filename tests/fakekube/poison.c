#include "poison.h"
#include "facts.h"
#include "store.h"

#include <string.h>

static void fill_big(struct buf *b)
{
	for (unsigned i = 0; i < 3 * 1024; i++)
		buf_addf(b, "%s\"example.com/k%04u\":\"%01012d\"", i ? "," : "", i, 0);
}

static void fill_deep(struct buf *b)
{
	static const unsigned depth = 100000;

	buf_adds(b, "\"example.com/deep\":");
	for (unsigned i = 0; i < depth; i++)
		buf_adds(b, "[");
	for (unsigned i = 0; i < depth; i++)
		buf_adds(b, "]");
}

/* A row per poison: what stands in the annotations, or a function that writes it. */
static const struct poison {
	const char *kind, *annotations, *more; /* more: after the status, with its comma */
	void (*fill)(struct buf *b);
} poisons[] = {
	{ "nul", "\"example.com/nul\":\"a\\u0000b\",\"example.com/lone\":\"\\ud800\"", "", NULL },
	{ "hugeint", "\"example.com/n\":123456789012345678901234567890",
	  ",\"huge\":99999999999999999999999999999999,\"real\":1e400", NULL },
	{ "big", NULL, "", fill_big },
	{ "deep", NULL, "", fill_deep },
	{ "badutf8", "\"example.com/bytes\":\"\xff\xfe\xc0\x80\"", "", NULL },
	{ "types", "\"example.com/x\":{}", ",\"items\":7", NULL },
};

static const struct poison *find(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(poisons); i++) {
		if (strcmp(poisons[i].kind, kind) == 0)
			return &poisons[i];
	}
	return NULL;
}

bool poison_known(const char *kind)
{
	return find(kind);
}

int poison_add(const char *kind, const char *ns, const char *name, const char *node)
{
	const struct poison *p = find(kind);
	char uid[UID_SIZE], now[TIME_TEXT_SIZE];
	struct buf b = BUF_INIT;
	struct facts *f;

	if (store_find(&kinds[KIND_PODS], ns, name))
		return -1;
	uid_new(uid);
	time_text(now, now_us());
	/* "types" has a spec and a name of the wrong type. */
	buf_addf(&b,
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
		 "\"creationTimestamp\":\"%s\",\"labels\":{\"app\":\"poison\"},\"annotations\":{",
		 name, ns, uid, now);
	if (p->fill)
		p->fill(&b);
	else
		buf_adds(&b, p->annotations);
	buf_addf(&b,
		 "},\"resourceVersion\":\"%llu\"},\"spec\":", (unsigned long long)store_next_rv());
	if (strcmp(kind, "types") == 0)
		buf_adds(&b, "[\"not an object\"]");
	else if (*node)
		buf_addf(&b,
			 "{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"image\":\"i\","
			 "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}",
			 node);
	else
		buf_adds(&b, "{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}");
	buf_addf(&b, "%s,\"status\":{\"phase\":\"Pending\"}}", p->more);
	f = facts_bare(ns, name, uid);
	f->pod.node = arena_strdup(&f->mem, node);
	store_add(version_raw(&kinds[KIND_PODS], f, b.s, b.len, store_next_rv()));
	buf_done(&b);
	return 0;
}
