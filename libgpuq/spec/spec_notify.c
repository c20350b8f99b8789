/* Notifications of a job: `notify` of the job file, --mail-type and similar options. */
#include "libgpuq/spec/spec_kinds.h"

#include <string.h>

struct told {
	struct gpuq_strlist on;
	const char *mail, *webhook;
};

/* clang-format off */
static const struct gpuq_field told_fields[] = {
	{ .key = "on", .kind = GPUQ_K_STRLIST, .offset = offsetof(struct told, on),
	  .doc = "begin, end, fail, requeue, preempt, invalid_depend, provisioned, provision_failed, time_limit, time_90, time_80, "
		 "time_50, array_tasks, all, none. Default: end and fail." },
	{ .key = "mail", .kind = GPUQ_K_STR, .offset = offsetof(struct told, mail),
	  .doc = "Mail address; without it and a webhook: mail_user, else the submitter." },
	{ .key = "webhook", .kind = GPUQ_K_STR, .offset = offsetof(struct told, webhook),
	  .doc = "URL that gets a POST, among those that the site allows." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema told_schema = { .name = "notify",
						.size = sizeof(struct told),
						.fields = told_fields };

int spec_notify_words(const struct gpuq_strlist *words, bool slurm, unsigned *on,
		      struct gpuq_err *err)
{
	unsigned got = 0;

	for (size_t i = 0; i < words->n; i++)
		if (!gpuq_notify_word(words->items[i], slurm, &got))
			return gpuq_fail(
				err, GPUQ_EINVAL, "expected %s, not '%.80s'",
				slurm ? "BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, ALL or NONE"
				      : "begin, end, fail, requeue, preempt, "
					"invalid_depend, provisioned, provision_failed, "
					"time_limit, time_90, time_80, "
					"time_50, array_tasks, all or none",
				words->items[i]);
	*on = got;
	return 0;
}

static int notify_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct told t = { .mail = NULL };
	struct gpuq_val *map = gpuq_map(r->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_notify got = { 0 };
	int rc;

	if (!map)
		return gpuq_no_memory(r->err);
	if (v->type != GPUQ_MAP) { /* the list alone */
		map->at = v->at;
		if (!gpuq_put(r->arena, map, "on", (struct gpuq_val *)v))
			return gpuq_no_memory(r->err);
		map->pairs[0].at = v->at;
		v = map;
	}
	rc = gpuq_schema_read(r, &told_schema, v, &t);
	if (rc == 0)
		rc = spec_notify_words(&t.on, false, &got.on, &err);
	if (rc == 0 && !gpuq_get(v, "on"))
		got.on = GPUQ_NOTIFY_END | GPUQ_NOTIFY_FAIL;
	if (rc == 0 && t.mail)
		rc = gpuq_mail_check(t.mail, &err);
	if (rc == 0 && t.webhook)
		rc = gpuq_url_check(t.webhook, &err);
	if (rc < 0)
		return err.code ? spec_fail(r, v, rc, "%s", err.text) : rc;
	got.mail = t.mail;
	got.webhook = t.webhook;
	*(struct gpuq_notify *)out = got;
	return 0;
}

static struct gpuq_val *notify_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_notify *n = in;
	struct gpuq_val *v, *on;

	if (!n->on && !n->mail && !n->webhook)
		return NULL;
	on = gpuq_list(a);
	for (unsigned i = 0; i < N_GPUQ_NOTIFY_BITS; i++)
		if (n->on & (1u << i))
			gpuq_add(a, on, gpuq_str(a, gpuq_notify_name(1u << i)));
	if (!n->mail && !n->webhook)
		return on;
	v = gpuq_map(a);
	gpuq_put(a, v, "on", on);
	if (n->mail)
		gpuq_put(a, v, "mail", gpuq_str(a, n->mail));
	if (n->webhook)
		gpuq_put(a, v, "webhook", gpuq_str(a, n->webhook));
	return v;
}

const struct gpuq_custom spec_notify_kind = { notify_read, notify_write };

void gpuq_spec_told(const struct gpuq_spec *spec, const char *submitter, struct gpuq_notify *mail,
		    struct gpuq_notify *web)
{
	const struct gpuq_notify *n = &spec->notify;
	struct gpuq_err err = GPUQ_ERR_INIT;

	*mail = *web = (struct gpuq_notify){ 0 };
	(void)spec_notify_words(&spec->mail_type, true, &mail->on, &err);
	if (n->mail || !n->webhook)
		mail->on |= n->on;
	if (mail->on)
		mail->mail = n->mail ? n->mail : spec->mail_user ? spec->mail_user : submitter;
	if (n->webhook && n->on) {
		web->on = n->on;
		web->webhook = n->webhook;
	}
}
