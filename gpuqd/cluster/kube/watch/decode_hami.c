#include "gpuqd/cluster/kube/watch/decode_hami.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/devices/hami.h"
#include "libgpuq/limits.h"

/* The list is JSON; of earlier versions "UUID,count,MiB,cores,type,numa,health:" for each card, and later
 * ",index,mode" behind that. All of it is a plugin's word, and a node's account may write it. */

#define SPLIT_MAX 1000 /* pods of a card: a thousandth of it is the least part */
#define MIB_MAX (INT64_C(1) << 24) /* of a card: 16 TiB */
#define UUID_MAX 128
#define FIELDS_OLD 7
#define FIELDS 9
#define MODE_MIG "mig"

struct card {
	const char *uuid;
	char *type;
	int64_t split, mib, numa;
	bool healthy, mig;
};

/* Returns what is wrong with the card; NULL = nothing. */
static const char *add(struct hami_cards *out, const struct card *c)
{
	/* Its plugin puts the vendor before the product's name ("NVIDIA-Tesla T4"), later versions
	 * where the name does not have it ("NVIDIA A100"); feature discovery, and so flavors, have
	 * names alone, without blanks. */
	static const char vendor[] = "NVIDIA-";
	char *type = c->type;

	if (!*c->uuid || strlen(c->uuid) > UUID_MAX || strchr(c->uuid, ',') ||
	    strchr(c->uuid, ':') || strchr(c->uuid, ';'))
		return "expected a UUID of each card";
	if (c->split < 1 || c->split > SPLIT_MAX)
		return "expected a split count of 1 to 1000";
	if (c->mib < 1 || c->mib > MIB_MAX)
		return "expected the memory of each card in MiB";
	if (out->n == GPUQ_GPUS_PER_POD_MAX)
		return "expected at most 1024 cards";
	for (size_t i = 0; i < out->n; i++)
		if (strcmp(out->devices[i].uuid, c->uuid) == 0)
			return "expected each UUID once";
	if (strncmp(type, vendor, sizeof(vendor) - 1) == 0)
		type += sizeof(vendor) - 1;
	for (char *p = type; (p = strchr(p, ' ')) != NULL; p++)
		*p = '-';
	out->mig[out->n] = c->mig;
	out->numa[out->n] = c->numa >= 0 && c->numa < 255 ? (uint8_t)c->numa : 0;
	if (out->n == 0 || c->split < out->slots)
		out->slots = (uint32_t)c->split;
	out->devices[out->n++] = (struct device_fact){ c->uuid, type, c->mib, c->healthy };
	return NULL;
}

static int64_t digits(const char *text)
{
	int64_t v = 0;

	if (!*text)
		return -1;
	for (; *text >= '0' && *text <= '9' && v <= MIB_MAX; text++)
		v = v * 10 + (*text - '0');
	return *text ? -1 : v;
}

/* ---- JSON ----
 *
 * Every change of a node brings the whole list again, so it is read where it is, in one pass, without a tree.
 * Members of other names are skipped, whatever they hold. */

static char *skip_blanks(char *p)
{
	/* Plugins write none. */
	while (*p <= ' ' && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p;
}

/* Return the end of the string that begins at p, behind its quote; NULL = it has none. */
static char *string_end(char *p)
{
	char *end = p;

	while ((end = strchr(end + 1, '"')) != NULL) {
		char *before = end;

		while (before > p + 1 && before[-1] == '\\')
			before--;
		if ((end - before) % 2 == 0)
			return end + 1;
	}
	return NULL;
}

/* The characters that may stand behind a number or a word. */
static const bool ends_value[256] = {
	['\0'] = true, [','] = true, ['}'] = true,
	[']'] = true,  [' '] = true, ['\t' ... '\r'] = true,
};

/* Return what follows the object or array at p; NULL = it does not end. */
static char *skip_nested(char *p)
{
	int depth = 0;

	do {
		if (*p == '"') {
			p = string_end(p);
			if (!p)
				return NULL;
			continue;
		}
		if (*p == '\0')
			return NULL;
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		p++;
	} while (depth > 0);
	return p;
}

/* Return what follows the value at p; NULL = it does not end. */
static char *skip_value(char *p)
{
	if (*p == '"')
		return string_end(p);
	if (*p == '{' || *p == '[')
		return skip_nested(p);
	while (!ends_value[(unsigned char)*p])
		p++;
	return *p ? p : NULL;
}

/* Take the value from p to end, which is cut there: a member of a card. */
static void take(struct card *c, const char *key, char *p, char *end)
{
	const bool text = *p == '"';

	*end = '\0';
	if (text) {
		end[-1] = '\0';
		p++;
	}
	/* By the letter first: most members are none of these. */
	if (*key == 'i' && strcmp(key, "id") == 0 && text)
		c->uuid = p;
	else if (*key == 't' && strcmp(key, "type") == 0 && text)
		c->type = p;
	else if (*key == 'c' && strcmp(key, "count") == 0)
		c->split = digits(p);
	else if (*key == 'd' && strcmp(key, "devmem") == 0)
		c->mib = digits(p);
	else if (*key == 'm' && strcmp(key, "mode") == 0 && text)
		c->mig = strcmp(p, MODE_MIG) == 0;
	else if (*key == 'n' && strcmp(key, "numa") == 0)
		c->numa = digits(p);
	else if (*key == 'h' && strcmp(key, "health") == 0)
		c->healthy = strcmp(p, "true") == 0;
}

/* Read the object at *at, behind its brace. False: it is none. */
static bool read_object(char **at, struct card *c)
{
	char *p = skip_blanks(*at);

	while (*p == '"') {
		char *key = p + 1, *end = string_end(p), *value, next;

		if (!end)
			return false;
		end[-1] = '\0';
		p = skip_blanks(end);
		if (*p != ':')
			return false;
		value = skip_blanks(p + 1);
		end = skip_value(value);
		if (!end || end == value)
			return false;
		p = skip_blanks(end);
		next = *p;
		take(c, key, value, end);
		if (next == '}') {
			*at = p + 1;
			return true;
		}
		if (next != ',')
			return false;
		p = skip_blanks(p + 1);
	}
	*at = p + 1;
	return *p == '}';
}

/* Cut the text, which is a copy. */
static const char *read_json(char *text, struct hami_cards *out)
{
	static const char none[] = "expected a JSON array of objects";
	char *p = skip_blanks(text + 1);

	if (*p == ']')
		return *skip_blanks(p + 1) ? none : NULL;
	for (;;) {
		struct card c = { .uuid = "", .type = text, .split = -1, .mib = -1, .numa = -1 };
		const char *wrong;

		*text = '\0'; /* of a card without a type */
		if (*p++ != '{' || !read_object(&p, &c))
			return none;
		wrong = add(out, &c);
		if (wrong)
			return wrong;
		p = skip_blanks(p);
		if (*p == ']')
			return *skip_blanks(p + 1) ? none : NULL;
		if (*p != ',')
			return none;
		p = skip_blanks(p + 1);
	}
}

/* ---- the text of earlier versions ---- */

/* Cut the text, which is a copy. */
static const char *read_text(char *text, struct hami_cards *out)
{
	while (*text) {
		char *end = strchr(text, ':'), *field[FIELDS] = { NULL }, *p = text;
		size_t n = 0;
		struct card c;
		const char *wrong;

		if (!end)
			return "expected a colon behind each card";
		*end = '\0';
		while (p && n < FIELDS) {
			field[n++] = p;
			p = strchr(p, ',');
			if (p)
				*p++ = '\0';
		}
		if (p || (n != FIELDS_OLD && n != FIELDS))
			return "expected 7 or 9 fields of each card";
		c = (struct card){ .uuid = field[0],
				   .split = digits(field[1]),
				   .mib = digits(field[2]),
				   .type = field[4],
				   .numa = digits(field[5]),
				   .healthy = strcmp(field[6], "true") == 0,
				   .mig = field[8] && strcmp(field[8], MODE_MIG) == 0 };
		wrong = add(out, &c);
		if (wrong)
			return wrong;
		text = end + 1;
	}
	return NULL;
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	while ((text = strchr(text, c)) != NULL) {
		text++;
		n++;
	}
	return n;
}

/* Copy what the cards are called: most are of one type. False: no memory. */
static bool keep(struct gpuq_arena *a, struct hami_cards *cards)
{
	struct device_fact *d = cards->devices;

	for (size_t i = 0; i < cards->n; i++) {
		d[i].uuid = gpuq_arena_strdup(a, d[i].uuid);
		d[i].product = i > 0 && strcmp(d[i].product, d[i - 1].product) == 0
				       ? d[i - 1].product
				       : gpuq_arena_strdup(a, d[i].product);
		if (!d[i].uuid || !d[i].product)
			return false;
	}
	return true;
}

int kube_hami_parse(char *text, struct gpuq_arena *a, struct hami_cards *out)
{
	struct hami_cards got = { 0 };
	size_t most;

	*out = got;
	if (!*text)
		return 0;
	most = count(text, *text == '[' ? '{' : ':');
	most = most < GPUQ_GPUS_PER_POD_MAX ? most : GPUQ_GPUS_PER_POD_MAX;
	got.devices = gpuq_arena_calloc(a, most + 1, sizeof(*got.devices));
	got.numa = gpuq_arena_calloc(a, most + 1, sizeof(*got.numa));
	got.mig = gpuq_arena_calloc(a, most + 1, sizeof(*got.mig));
	if (!got.devices || !got.numa || !got.mig)
		return GPUQ_ENOMEM;
	got.wrong = *text == '[' ? read_json(text, &got) : read_text(text, &got);
	if (got.wrong)
		got.n = 0;
	if (!keep(a, &got))
		return GPUQ_ENOMEM;
	*out = got;
	return 0;
}

int kube_read_hami(struct kube_object *o, struct hami_cards *out)
{
	const json_t *note =
		json_object_get(kube_path(o->object, "metadata", "annotations"), HAMI_REGISTER);
	const char *text = json_is_string(note) ? json_string_value(note) : "";
	char *copy;

	if (json_is_string(note) && !*text && o->cut) {
		*out = *o->cut;
		return 0;
	}
	*out = (struct hami_cards){ 0 };
	if (strlen(text) > HAMI_REGISTER_MAX) {
		out->wrong = "expected at most 256 KiB";
		return 0;
	}
	copy = gpuq_arena_strdup(&o->arena, text);
	return copy ? kube_hami_parse(copy, &o->arena, out) : GPUQ_ENOMEM;
}

/* ---- cards that get no pods ---- */

static size_t cut_cards(struct hami_cards *cards, struct gpuq_buf *notes)
{
	size_t n = 0;

	for (size_t i = 0; i < cards->n; i++) {
		if (!cards->mig[i])
			continue;
		gpuq_buf_printf(
			notes, "%s%zu",
			n++ ? ", " : "cards in MIG mode are HAMi's own to cut, and not used: ", i);
		cards->devices[i].healthy = false;
	}
	return n;
}

/* HAMi itself reads "a, b": its scheduler gives these no new pods, and leaves those alone that are there. */
static int cordoned_cards(struct kube_object *o, struct hami_cards *cards, bool more,
			  struct gpuq_buf *notes)
{
	char *text = gpuq_arena_strdup(
		&o->arena, kube_str(kube_path(o->object, "metadata", "annotations"), HAMI_CORDON));
	char *rest = text, *word;
	bool any = false;

	if (!text)
		return GPUQ_ENOMEM;
	while ((word = strsep(&rest, ", ")) != NULL) {
		size_t i = 0;

		if (!*word)
			continue;
		while (i < cards->n && strcmp(cards->devices[i].uuid, word) != 0)
			i++;
		if (!any)
			gpuq_buf_printf(notes, "%s" HAMI_CORDON " lists cards that are not used: ",
					more ? "; " : "");
		if (i < cards->n)
			gpuq_buf_printf(notes, "%s%zu", any ? ", " : "", i);
		else
			gpuq_buf_printf(notes, "%s%.40s (there is none)", any ? ", " : "", word);
		if (i < cards->n)
			cards->devices[i].healthy = false;
		any = true;
	}
	return 0;
}

int kube_hami_unused(struct kube_object *o, struct hami_cards *cards, struct gpuq_buf *notes)
{
	const bool more = cut_cards(cards, notes) > 0;

	return cordoned_cards(o, cards, more, notes);
}

/* ---- nodes that are HAMi's ---- */

const char *kube_hami_lie(struct kube_object *o, const struct gpuq_strmap *labels, bool explained)
{
	static const char begins[] = "hami.io/node-";
	json_t *notes = kube_path(o->object, "metadata", "annotations"), *v;
	const char *sign = strcmp(gpuq_strmap_text(labels, HAMI_LABEL), HAMI_LABEL_VALUE) == 0
				   ? HAMI_LABEL "=" HAMI_LABEL_VALUE
				   : NULL;
	const char *key;

	if (explained)
		return NULL;
	json_object_foreach(notes, key, v)
	{
		if (strcmp(key, HAMI_REGISTER) == 0)
			return HAMI_REGISTER ": expected the cards of the node: it names none";
		if (!sign && strncmp(key, begins, sizeof(begins) - 1) == 0)
			sign = key;
	}
	if (!sign)
		return NULL;
	key = gpuq_arena_printf(
		&o->arena,
		"%.60s of the node is HAMi's, and there is no annotation " HAMI_REGISTER
		": its cards are not known",
		sign);
	return key ? key : HAMI_REGISTER;
}
