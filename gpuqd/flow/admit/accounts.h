/* accounts.h - service accounts that manifests name
 *
 * Owns nothing. Touches the draft. Used by submit.c.
 */
#ifndef GPUQD_FLOW_ADMIT_ACCOUNTS_H
#define GPUQD_FLOW_ADMIT_ACCOUNTS_H

struct draft;
struct gpuq_err;

/* Refuse a service account that the queue does not let manifests name; without such a rule warn that
 * it is not used. */
int accounts_check(struct draft *d, struct gpuq_err *err);

#endif
