/* control.h - what is asked of the server beside the API's resources
 *
 * Owns     discovery and probes, and the /fake/ pages: state, audit, faults.
 */
#ifndef FAKEKUBE_CONTROL_H
#define FAKEKUBE_CONTROL_H

#include "api.h"

/* Answer /version, /readyz, /api, /apis and the like. Returns false for others. */
bool discovery_get(const struct http_req *req, struct reply *r);
/* Answer a SelfSubjectAccessReview: all is allowed but what --deny names, "verb/resource" by
 * commas. Returns false for other requests. */
bool review_post(const struct http_req *req, struct reply *r);
void review_deny(const char *list);
void control_request(struct http_req *req, struct reply *r);

#endif
