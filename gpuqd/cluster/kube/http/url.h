/* url.h - parts of request paths
 *
 * Owns and touches nothing but the buffer it appends to.
 * Used by  watch.c, api.c, logs.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_URL_H
#define GPUQD_CLUSTER_KUBE_HTTP_URL_H

#include "libgpuq/buf.h"

/* s with everything but A-Z a-z 0-9 - . _ ~ escaped: "%2F". */
void url_escape(struct gpuq_buf *b, const char *s);

/* "&key=value"; the path has a query already. */
void url_query(struct gpuq_buf *b, const char *key, const char *value);

/* "/api/v1/namespaces/NS/PLURAL" and "/NAME" unless name is NULL. */
void url_object(struct gpuq_buf *b, const char *namespace_, const char *plural, const char *name);

#endif
