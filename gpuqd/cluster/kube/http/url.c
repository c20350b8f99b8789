#include "gpuqd/cluster/kube/http/url.h"

#include <stdbool.h>
#include <string.h>

static bool plain(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

void url_escape(struct gpuq_buf *b, const char *s)
{
	for (; *s; s++) {
		if (plain(*s))
			gpuq_buf_addc(b, *s);
		else
			gpuq_buf_printf(b, "%%%02X", (unsigned char)*s);
	}
}

void url_query(struct gpuq_buf *b, const char *key, const char *value)
{
	gpuq_buf_printf(b, "&%s=", key);
	url_escape(b, value);
}

void url_object(struct gpuq_buf *b, const char *namespace_, const char *plural, const char *name)
{
	gpuq_buf_adds(b, "/api/v1/namespaces/");
	url_escape(b, namespace_);
	gpuq_buf_printf(b, "/%s", plural);
	if (name) {
		gpuq_buf_addc(b, '/');
		url_escape(b, name);
	}
}
