/* Connections to the server that stop being HTTP after their first words. libcurl makes
 * them, with all that belongs to it (proxies, TLS, client certificates), and then only
 * carries bytes. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "gpuqd/cluster/kube/http/http_parts.h"

int http_tunnel_fd(struct http_req *r)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	curl_easy_getinfo(r->easy, CURLINFO_ACTIVESOCKET, &fd);
	return (int)fd;
}

static int outcome(CURLcode code, size_t n)
{
	if (code == CURLE_AGAIN)
		return 0;
	return code == CURLE_OK && n > 0 ? 1 : -1;
}

int http_tunnel_send(struct http_req *r, const void *bytes, size_t n, size_t *sent)
{
	CURLcode code;

	*sent = 0;
	code = curl_easy_send(r->easy, bytes, n, sent);
	return outcome(code, *sent);
}

int http_tunnel_recv(struct http_req *r, void *bytes, size_t room, size_t *n)
{
	CURLcode code;

	*n = 0;
	code = curl_easy_recv(r->easy, bytes, room, n);
	return outcome(code, *n);
}

static const char *host_of(const struct http *h)
{
	return strstr(h->config->server, "://") + 3;
}

const char *http_prefix(const struct http *h)
{
	const char *host = host_of(h);

	return host + strcspn(host, "/");
}

static void put_basic(const struct kube_config *k, struct gpuq_buf *out)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	char *coded;

	gpuq_buf_printf(&text, "%s:%s", k->username, k->password);
	coded = malloc(4 * (text.len / 3 + 1) + 1);
	if (coded && !text.failed) {
		EVP_EncodeBlock((unsigned char *)coded, (const unsigned char *)text.data,
				(int)text.len);
		gpuq_buf_printf(out, "Authorization: Basic %s\r\n", coded);
	}
	free(coded);
	gpuq_buf_done(&text);
}

void http_tunnel_headers(const struct http_req *r, struct gpuq_buf *out)
{
	const struct kube_config *k = r->http->config;
	const char *host = host_of(r->http);

	gpuq_buf_printf(out, "Host: %.*s\r\nUser-Agent: gpuqd/" PACKAGE_VERSION "\r\n",
			(int)strcspn(host, "/"), host);
	/* Those without a value are for curl; what is requested here has no form to accept, and
	 * servers say 406 to whoever names one. */
	for (const struct curl_slist *l = r->headers; l; l = l->next)
		if (l->data[strlen(l->data) - 1] != ':' && strncmp(l->data, "Accept:", 7) != 0)
			gpuq_buf_printf(out, "%s\r\n", l->data);
	if (*k->username && !r->creds->token)
		put_basic(k, out);
}

bool http_unauthorized(struct http_req *r)
{
	return creds_refused(r->http->creds, r->creds);
}
