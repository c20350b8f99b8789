/* write_many.c - DELETE of a collection */
#include "audit.h"
#include "list.h"
#include "select.h"
#include "write.h"

#include <stdlib.h>
#include <string.h>

void write_delete_collection(const struct call *call, struct reply *r)
{
	const struct delete_options opt = { .grace_s = -1 };
	struct selector *sel = NULL;
	struct version **all;
	char *why = NULL;
	size_t n;

	if (selector_parse(call->kind, http_param(call->req, "labelSelector"),
			   http_param(call->req, "fieldSelector"), &sel, &why) != 0) {
		reply_error(r, 400, "BadRequest", NULL, NULL, "%s", why);
		free(why);
		return;
	}
	all = list_sorted(call->kind, &n);
	for (size_t i = 0; i < n; i++)
		version_ref(all[i]);
	for (size_t i = 0; i < n; i++) {
		const struct facts *f = all[i]->facts;
		struct obj *o = store_find(call->kind, f->ns, f->name);

		if (o && (!*call->ns || strcmp(f->ns, call->ns) == 0) &&
		    selector_match(sel, all[i])) {
			write_delete_object(o, &opt);
			audit_write("delete", all[i]);
		}
		version_unref(all[i]);
	}
	free(all);
	selector_free(sel);
	reply_success(r, 200);
}
