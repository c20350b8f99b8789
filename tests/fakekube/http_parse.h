/* http_parse.h - the bytes of a request into its parts
 *
 * Owns     the grammar; knows no sockets, so it can be fed from anywhere.
 */
#ifndef FAKEKUBE_HTTP_PARSE_H
#define FAKEKUBE_HTTP_PARSE_H

#include "http.h"

struct http_framing {
	bool chunked, keep_alive, expect_continue;
	uint64_t length;
};

/* Read a head (request line to the empty line, n bytes). Fills req, which then
 * owns a copy. Returns 0, or the HTTP status that refuses it. */
int http_parse_head(const char *head, size_t n, struct http_req *req, struct http_framing *f);

/* Decode a chunked body at p (n bytes so far) into out. Returns the bytes it
 * took when complete, 0 when more must come, -1 when malformed, -2 when longer
 * than max. */
long http_parse_chunked(const char *p, size_t n, size_t max, struct buf *out);

/* "Not Found" for 404. */
const char *http_reason(int code);

void http_req_free(struct http_req *req);

#endif
