/* quota.h - ResourceQuota
 *
 * Owns     what each namespace uses (charged at create, released at the end of
 *          the pod), the check at create, and status.used of the quotas.
 */
#ifndef FAKEKUBE_QUOTA_H
#define FAKEKUBE_QUOTA_H

#include "api.h"

void quota_init(struct event_base *base);
/* May a pod asking for want be made? Returns 0, or -1 when r refuses. */
int quota_check(const char *ns, const char *pod, const struct res *want, struct reply *r);
void quota_done(void);

#endif
