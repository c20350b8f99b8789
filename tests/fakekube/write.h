/* write.h - the verbs that change objects
 *
 * Owns     create, update, patch and delete for every type; what is special to
 *          a type is asked of admit.c, quota.c and pods.c.
 */
#ifndef FAKEKUBE_WRITE_H
#define FAKEKUBE_WRITE_H

#include "api.h"

void write_create(const struct call *call, struct reply *r);
void write_update(const struct call *call, struct reply *r); /* PUT and PATCH, /status too */
void write_delete(const struct call *call, struct reply *r);
void write_delete_collection(const struct call *call, struct reply *r);

/* Make an object and enter it, without admission: for nodes and namespaces of
 * the start, foreign pods and scripts. obj is borrowed and changed. */
struct obj *write_new(struct kind *kind, const char *ns, const char *name, json_t *obj);

/* Options of a DELETE. grace_s -1: the object's own. */
struct delete_options {
	int64_t grace_s;
	const char *uid, *rv; /* preconditions, or NULL */
};
/* Delete by the rules of the type. Returns true when the object is gone. */
bool write_delete_object(struct obj *o, const struct delete_options *opt);
/* Remove an object that waits for nothing any more. */
void write_remove_if_done(struct obj *o);

/* Read the request's body as a JSON object; NULL: r refuses. */
json_t *write_body(const struct call *call, struct reply *r);

#endif
