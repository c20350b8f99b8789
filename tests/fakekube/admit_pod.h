/* admit_pod.h - the pod's own rules, and the list of causes that all rules share */
#ifndef FAKEKUBE_ADMIT_POD_H
#define FAKEKUBE_ADMIT_POD_H

#include "api.h"

struct causes {
	json_t *list; /* NULL while all is well */
	struct buf text;
};

void cause_add(struct causes *c, const char *reason, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool dns_label_ok(const char *s);
bool dns_subdomain_ok(const char *s);

/* Check and default a new pod. Returns 0 with causes added, or -1 when r refuses
 * for another reason than a field. */
int admit_pod(json_t *obj, struct causes *c, struct reply *r);
void check_pod_update(const struct version *old, const json_t *now, struct causes *c);

#endif
