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

struct card {
	const char *uuid;
	char *type;
	int64_t split, mib, numa;
	bool healthy;
};

/* Returns what is wrong with the card; NULL = nothing. */
static const char *add(struct hami_cards *out, const struct card *c)
{
	/* Its plugin puts the vendor before the product's name, in which feature discovery, and so
	 * flavors, have no blanks. */
	static const char vendor[] = "NVIDIA-";
	char *type = c->type;

	if (!*c->uuid || strlen(c->uuid) > UUID_MAX || strpbrk(c->uuid, ",:;"))
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
	if (strncmp(type, vendor, sizeof(vendor) - 1) == 0 &&
	    strncmp(type + sizeof(vendor) - 1, vendor, sizeof(vendor) - 2) == 0)
		type += sizeof(vendor) - 1;
	for (char *p = type; *p; p++)
		*p = *p == ' ' ? '-' : *p;
	out->numa[out->n] = c->numa >= 0 && c->numa < 255 ? (uint8_t)c->numa : 0;
	if (out->n == 0 || c->split < out->slots)
		out->slots = (uint32_t)c->split;
	out->devices[out->n++] = (struct device_fact){ c->uuid, type, c->mib, c->healthy };
	return NULL;
}

static int64_t number(const json_t *v)
{
	return json_is_integer(v) ? json_integer_value(v) : -1;
}

/* The strings stay in the arena: the parsed list goes. */
static const char *read_json(struct kube_object *o, const json_t *list, struct hami_cards *out)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
	{
		const char *uuid = gpuq_arena_strdup(&o->arena, kube_str(v, "id"));
		char *type = gpuq_arena_strdup(&o->arena, kube_str(v, "type"));
		const struct card c = {
			.uuid = uuid ? uuid : "",
			.type = type,
			.split = number(json_object_get(v, "count")),
			.mib = number(json_object_get(v, "devmem")),
			.numa = number(json_object_get(v, "numa")),
			.healthy = json_is_true(json_object_get(v, "health")),
		};
		const char *wrong = !json_is_object(v) ? "expected objects"
				    : uuid && type     ? add(out, &c)
						       : "no memory";

		if (wrong)
			return wrong;
	}
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
				   .healthy = strcmp(field[6], "true") == 0 };
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

	for (; *text; text++)
		n += *text == c;
	return n;
}

int kube_read_hami(struct kube_object *o, struct hami_cards *out)
{
	const char *text = kube_str(kube_path(o->object, "metadata", "annotations"), HAMI_REGISTER);
	const bool json = *text == '[';
	struct hami_cards got = { 0 };
	json_t *list = NULL;
	char *copy = NULL;
	size_t most;
	int rc = GPUQ_ENOMEM;

	*out = got;
	if (!*text)
		return 0;
	if (strlen(text) > HAMI_REGISTER_MAX) {
		out->wrong = "expected at most 256 KiB";
		return 0;
	}
	most = count(text, json ? '{' : ':');
	most = most < GPUQ_GPUS_PER_POD_MAX ? most : GPUQ_GPUS_PER_POD_MAX;
	got.devices = gpuq_arena_calloc(&o->arena, most + 1, sizeof(*got.devices));
	got.numa = gpuq_arena_calloc(&o->arena, most + 1, sizeof(*got.numa));
	if (!got.devices || !got.numa)
		goto out;
	if (json) {
		list = json_loads(text, 0, NULL);
		got.wrong =
			json_is_array(list) ? read_json(o, list, &got) : "expected a JSON array";
	} else {
		copy = gpuq_arena_strdup(&o->arena, text);
		if (!copy)
			goto out;
		got.wrong = read_text(copy, &got);
	}
	if (got.wrong)
		got.n = 0;
	*out = got;
	rc = 0;
out:
	json_decref(list);
	return rc;
}
