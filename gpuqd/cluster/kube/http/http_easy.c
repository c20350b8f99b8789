/* The curl handle of a request: address, headers, TLS. Declared in http_parts.h; called by http.c. */
#include <config.h>

#include "gpuqd/cluster/kube/http/http_parts.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define REQUEST_MS 30000
#define CONNECT_MS 5000L
#define METADATA "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"

static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype type)
{
	unsigned limit_ms = 30000;

	(void)arg, (void)type;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* Without it a peer that vanished under unsent bytes is noticed after 15 min. */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
	return CURL_SOCKOPT_OK;
}

static bool header(struct http_req *r, const char *name, const char *value)
{
	size_t room = strlen(name) + strlen(value) + 3;
	char *line = malloc(room);
	struct curl_slist *list = NULL;

	if (line) {
		snprintf(line, room, "%s: %s", name, value);
		list = curl_slist_append(r->headers, line);
		explicit_bzero(line, room);
		free(line);
	}
	if (list)
		r->headers = list;
	return list != NULL;
}

static bool set_headers(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	bool ok = header(r, "Accept", r->call.metadata ? METADATA : "application/json");

	if (r->call.body)
		ok = ok && header(r, "Content-Type",
				  r->call.content_type ? r->call.content_type : "application/json");
	/* No "Expect: 100-continue": it costs a round trip for each large body. */
	r->headers = curl_slist_append(r->headers, "Expect:");
	if (r->creds->token) {
		size_t room = strlen(r->creds->token) + 8;
		char *value = malloc(room);

		if (!value)
			return false;
		snprintf(value, room, "Bearer %s", r->creds->token);
		ok = ok && header(r, "Authorization", value);
		explicit_bzero(value, room);
		free(value);
	}
	if (*k->as_user)
		ok = ok && header(r, "Impersonate-User", k->as_user);
	if (*k->as_uid)
		ok = ok && header(r, "Impersonate-Uid", k->as_uid);
	for (size_t i = 0; i < k->as_groups.n; i++)
		ok = ok && header(r, "Impersonate-Group", k->as_groups.items[i]);
	for (size_t i = 0; i < k->as_extra.n; i++) {
		char name[256];

		snprintf(name, sizeof(name), "Impersonate-Extra-%s", k->as_extra.keys[i]);
		ok = ok && header(r, name, k->as_extra.vals[i]);
	}
	return ok && r->headers;
}

/* tls-server-name: speak to the server's address, but ask for and check that name. */
static bool set_url(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	const char *host = strstr(k->server, "://") + 3;
	size_t n_host = strcspn(host, "/"), n_name, room;
	const char *port = NULL;
	char *url, *to;
	bool ok;

	room = strlen(k->server) + strlen(k->tls_server_name) + strlen(r->call.path) + 8;
	url = malloc(room);
	to = malloc(2 * room);
	if (!url || !to) {
		free(url);
		free(to);
		return false;
	}
	if (!*k->tls_server_name) {
		snprintf(url, room, "%s%s", k->server, r->call.path);
		ok = true;
	} else {
		for (size_t i = n_host; i > 0 && host[i - 1] != ']'; i--)
			if (host[i - 1] == ':') {
				port = host + i;
				break;
			}
		n_name = port ? (size_t)(port - 1 - host) : n_host;
		snprintf(url, room, "%.*s%s:%.*s%s%s", (int)(host - k->server), k->server,
			 k->tls_server_name, port ? (int)(host + n_host - port) : 3,
			 port ? port : "443", host + n_host, r->call.path);
		snprintf(to, 2 * room, "::%.*s:%.*s", (int)n_name, host,
			 port ? (int)(host + n_host - port) : 3, port ? port : "443");
		r->connect_to = curl_slist_append(NULL, to);
		ok = r->connect_to != NULL;
		curl_easy_setopt(r->easy, CURLOPT_CONNECT_TO, r->connect_to);
	}
	ok = ok && curl_easy_setopt(r->easy, CURLOPT_URL, url) == CURLE_OK;
	free(url);
	free(to);
	return ok;
}

static void blob(CURL *e, CURLoption opt, const struct kube_bytes *b)
{
	struct curl_blob cb = { .data = (void *)b->data, .len = b->n, .flags = CURL_BLOB_NOCOPY };

	if (b->data)
		curl_easy_setopt(e, opt, &cb);
}

static void set_tls(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	CURL *e = r->easy;

	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, k->insecure ? 0L : 1L);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, k->insecure ? 0L : 2L);
	curl_easy_setopt(e, CURLOPT_SSLCERTTYPE, "PEM");
	curl_easy_setopt(e, CURLOPT_SSLKEYTYPE, "PEM");
	blob(e, CURLOPT_CAINFO_BLOB, &r->creds->ca);
	blob(e, CURLOPT_SSLCERT_BLOB, &r->creds->cert);
	blob(e, CURLOPT_SSLKEY_BLOB, &r->creds->key);
}

static void set_transport(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	CURL *e = r->easy;

	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "https,http"); /* http: see kubeconfig.c */
	curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(e, CURLOPT_PROXY, k->proxy_url);
	curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a stuck resolver must not hold us */
	curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, 15L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, 10L);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	if (r->call.stream) {
		curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	} else {
		curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
		curl_easy_setopt(e, CURLOPT_PIPEWAIT, r->http->h2 ? 1L : 0L);
		curl_easy_setopt(e, CURLOPT_TIMEOUT_MS,
				 r->call.limit_us ? (long)(r->call.limit_us / 1000)
						  : (long)REQUEST_MS);
	}
}

bool http_make(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	CURL *e = r->easy = curl_easy_init();

	if (!e)
		return false;
	r->why[0] = '\0';
	set_transport(r);
	set_tls(r);
	curl_easy_setopt(e, CURLOPT_PRIVATE, r);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->why);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "gpuqd/" PACKAGE_VERSION);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, http_on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, http_on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
	if (*k->username && !r->creds->token) {
		curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(e, CURLOPT_USERNAME, k->username);
		curl_easy_setopt(e, CURLOPT_PASSWORD, k->password);
	}
	if (r->call.on_tunnel)
		curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
	if (strcmp(r->call.method, "GET") != 0) {
		curl_easy_setopt(e, CURLOPT_POST, 1L);
		curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->call.method);
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->call.body ? r->call.body : "");
		curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->call.n_body);
	}
	if (!set_url(r) || !set_headers(r))
		return false;
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);
	return true;
}
