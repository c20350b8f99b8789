#include "gpuqd/site/site_caps.h"

#include <string.h>

#include "gpuqd/site/site_rows.h"
#include "libgpuq/units.h"

/* ---- caps: 20, {user: 20, job: 8, queue: 100} ---- */

/* True if the value is a count of jobs or `unlimited'. */
static bool is_cap(const struct gpuq_val *v, int64_t *out)
{
	if (v->type == GPUQ_STR && strcmp(v->s, "unlimited") == 0)
		*out = GPUQ_UNLIMITED;
	else if (v->type == GPUQ_INT && v->i >= 0 && v->i <= SITE_CAP_MOST)
		*out = v->i;
	else
		return false;
	return true;
}

/* of_jobs: they are counted, so that there is none of a single one. */
static int read_caps(struct gpuq_reader *r, const struct gpuq_val *v, bool of_jobs, void *out)
{
	static const char *const keys[] = { "user", "queue", "job", NULL };
	struct site_cap *c = out;
	int64_t *const to[] = { &c->user, &c->queue, &c->job };
	const char *words = of_jobs ? "user or queue" : "user, queue or job";

	c->user = c->job = c->queue = GPUQ_UNLIMITED;
	if (v->type != GPUQ_MAP && is_cap(v, &c->queue))
		return 0;
	if (v->type != GPUQ_MAP)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected a number from 0 to %d, unlimited, or a map of "
					"%s",
					SITE_CAP_MOST, words);
	for (uint32_t i = 0; i < v->n; i++) {
		const struct gpuq_pair *p = &v->pairs[i];
		size_t mark = gpuq_reader_enter(r, p->key);
		int k = 0;

		while (keys[k] && strcmp(keys[k], p->key) != 0)
			k++;
		if (!keys[k] || (of_jobs && to[k] == &c->job))
			return gpuq_reader_fail(r, p->val, GPUQ_EINVAL, "unknown key: expected %s",
						words);
		if (!is_cap(p->val, to[k]))
			return gpuq_reader_fail(r, p->val, GPUQ_EINVAL,
						"expected a number from 0 to %d, or unlimited",
						SITE_CAP_MOST);
		gpuq_reader_leave(r, mark);
	}
	return 0;
}

static int read_cap(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	return read_caps(r, v, false, out);
}

static int read_count(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	return read_caps(r, v, true, out);
}

/* Print the caps that are set, always as a map. */
static struct gpuq_val *write_cap(struct gpuq_arena *mem, const void *in)
{
	const struct site_cap *c = in;
	struct gpuq_val *v;

	if (c->user == GPUQ_UNLIMITED && c->job == GPUQ_UNLIMITED && c->queue == GPUQ_UNLIMITED)
		return NULL;
	v = gpuq_map(mem);
	if (c->user != GPUQ_UNLIMITED)
		gpuq_put(mem, v, "user", gpuq_int(mem, c->user));
	if (c->job != GPUQ_UNLIMITED)
		gpuq_put(mem, v, "job", gpuq_int(mem, c->job));
	if (c->queue != GPUQ_UNLIMITED)
		gpuq_put(mem, v, "queue", gpuq_int(mem, c->queue));
	return v;
}

const struct site_cap site_caps_none = SITE_NO_CAP;
const struct gpuq_custom site_caps_custom = { read_cap, write_cap };
const struct gpuq_custom site_caps_count_custom = { read_count, write_cap };

/* ---- node_loss: strict, or {mode: available, after: 5m} ---- */

static const char *const node_loss_modes[] = { "strict", "available", NULL };

static const struct gpuq_field node_loss_fields[] = {
	F(site_node_loss, "mode", GPUQ_K_ENUM, mode, .names = node_loss_modes,
	  .doc = "what happens to a job whose node is lost"),
	F(site_node_loss, "after", GPUQ_K_DURATION, after_us, .doc = "available: requeue after"),
	END,
};

void site_caps_loss_defaults(void *obj)
{
	((struct site_node_loss *)obj)->after_us = 5 * 60 * GPUQ_US_PER_S;
}

static const struct gpuq_schema node_loss_schema = { .name = "node_loss",
						     .size = sizeof(struct site_node_loss),
						     .fields = node_loss_fields,
						     .defaults = site_caps_loss_defaults };

/* Read what happens to the jobs of a lost node: the mode alone, or with the time after which it
 * counts as lost. */
static int read_node_loss(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct site_node_loss *n = out;

	if (v->type == GPUQ_MAP)
		return gpuq_schema_read(r, &node_loss_schema, v, n);
	site_caps_loss_defaults(n);
	for (int i = 0; node_loss_modes[i]; i++)
		if (v->type == GPUQ_STR && strcmp(v->s, node_loss_modes[i]) == 0) {
			n->mode = i;
			return 0;
		}
	return gpuq_reader_fail(r, v, GPUQ_EINVAL,
				"expected strict, available or {mode: available, after: 5m}");
}

/* Print it as a map unless it is the default. */
static struct gpuq_val *write_node_loss(struct gpuq_arena *mem, const void *in)
{
	const struct site_node_loss *n = in;
	struct gpuq_val *v;
	char text[32];

	if (n->mode == 0)
		return NULL;
	v = gpuq_map(mem);
	gpuq_duration_print(n->after_us, text, sizeof(text));
	gpuq_put(mem, v, "mode", gpuq_str(mem, node_loss_modes[n->mode]));
	gpuq_put(mem, v, "after", gpuq_str(mem, text));
	return v;
}

const struct gpuq_custom site_caps_loss_custom = { read_node_loss, write_node_loss };
