#include "gpuqd/site/adoption.h"

#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/site/site_merge.h"
#include "gpuqd/site/site_rows.h"

static const struct gpuq_field adopted_fields[] = {
	F(site_adopted, "name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name of the namespace"),
	F(site_adopted, "queue", GPUQ_K_NAME, queue,
	  .doc = "queue of its pods that name none; default: these are left alone"),
	F(site_adopted, "user", GPUQ_K_STR, user, .min = 1, .max = 64,
	  .doc = "user whose jobs they are; default: kube:NAME"),
	END,
};

static const struct gpuq_schema adopted_schema = { .name = "namespace",
						   .size = sizeof(struct site_adopted),
						   .fields = adopted_fields };

static const struct gpuq_field adopt_fields[] = {
	F(site_adopt, "namespaces", GPUQ_K_OBJECTS, namespaces, .flags = GPUQ_F_REQUIRED,
	  .sub = &adopted_schema, .doc = "namespaces whose pods are adopted"),
	END,
};

const struct gpuq_schema site_adopt_schema = { .name = "adopt",
					       .size = sizeof(struct site_adopt),
					       .fields = adopt_fields };

/* Jobs are in queues without children: only these can adopt. */
static bool is_leaf(const struct site *s, const char *name)
{
	const struct site_queue *found = site_queue_find(s, name);

	site_each(site_queue, s->queues, q) {
		if (q->parent && strcmp(q->parent, name) == 0)
			return false;
	}
	return found != NULL;
}

int adoption_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s)
{
	const struct gpuq_val *list = gpuq_path(v, "adopt", "namespaces", NULL);
	const struct site_adopted *a = s->adopt ? s->adopt->namespaces.items : NULL;

	for (size_t i = 0; a && i < s->adopt->namespaces.n; i++) {
		if (!a[i].queue || is_leaf(s, a[i].queue))
			continue;
		gpuq_reader_enter(r, "adopt");
		gpuq_reader_enter(r, "namespaces");
		gpuq_reader_enter_member(r, list, i);
		gpuq_reader_enter(r, "queue");
		return gpuq_reader_fail(r, gpuq_get(list->items[i], "queue"), GPUQ_EINVAL,
					"expected a queue without queues below it, not '%s'",
					a[i].queue);
	}
	return 0;
}

/* Return the namespace that the queue, or one above it, names; NULL = that of gpuqd's own pods. */
static const char *namespace_of(const struct site *s, const char *queue)
{
	const struct site_queue *q = queue ? site_queue_find(s, queue) : NULL;

	while (q && !q->namespace_)
		q = q->parent ? site_queue_find(s, q->parent) : NULL;
	return q ? q->namespace_ : NULL;
}

/* Its pods count in the queue of a namespace that is not theirs. */
static int check_namespace(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s,
			   const struct site_adopted *a)
{
	const char *own = namespace_of(s, a->queue);

	if (!own || strcmp(own, a->name) == 0)
		return 0;
	gpuq_reader_enter(r, "queue");
	return gpuq_reader_fail(r, gpuq_get(v, "queue"), GPUQ_EINVAL,
				"expected a queue of namespace %s: that of queue %s is %s", a->name,
				a->queue, own);
}

int adoption_check_names(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s)
{
	const struct gpuq_val *list = gpuq_path(v, "adopt", "namespaces", NULL);
	const struct site_adopted *a = s->adopt ? s->adopt->namespaces.items : NULL;

	for (size_t i = 0; a && i < s->adopt->namespaces.n; i++) {
		const bool space = site_is_dns(a[i].name, false);
		const size_t mark = gpuq_reader_enter(r, "adopt");
		int rc;

		gpuq_reader_enter(r, "namespaces");
		gpuq_reader_enter_member(r, list, i);
		if (space && (!a[i].user || !a[i].user[strcspn(a[i].user, " \t\r\n")])) {
			rc = check_namespace(r, list->items[i], s, &a[i]);
			if (rc != 0)
				return rc;
			gpuq_reader_leave(r, mark);
			continue;
		}
		gpuq_reader_enter(r, space ? "user" : "name");
		return gpuq_reader_fail(
			r, gpuq_get(list->items[i], space ? "user" : "name"), GPUQ_EINVAL,
			space ? "expected the name of a user, without blanks"
			      : "expected a namespace as in Kubernetes: a-z, 0-9, and - inside");
	}
	return 0;
}

const struct site_adopted *adoption_of(const struct site *s, const char *namespace_)
{
	if (!s->adopt)
		return NULL;
	site_each(site_adopted, s->adopt->namespaces, a) {
		if (strcmp(a->name, namespace_) == 0)
			return a;
	}
	return NULL;
}
