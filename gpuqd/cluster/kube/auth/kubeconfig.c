#include "gpuqd/cluster/kube/auth/kubeconfig.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>

#define PEM_BYTES_MAX (1u << 20)

struct reading {
	struct kube_config *out;
	const char *file; /* of the object being read */
	const struct gpuq_val *obj; /* the cluster, user or exec map */
	const char *what; /* "user admin", for messages */
	struct gpuq_err *err;
};

/* A scalar as text: a token of digits is a string all the same. */
static const char *text_of(const struct gpuq_val *v)
{
	if (!v || v->type == GPUQ_NULL)
		return "";
	if (v->type == GPUQ_STR)
		return v->s;
	return v->src ? v->src : "";
}

static const char *text(const struct reading *r, const char *key)
{
	return text_of(gpuq_get(r->obj, key));
}

static bool truth(const struct reading *r, const char *key)
{
	return gpuq_get_bool(r->obj, key, false);
}

/* The object of a named list entry, {name: ..., <inner>: {...}}, and its file. */
static const struct gpuq_val *find(const struct kubeconfig_doc *docs, size_t n, const char *list,
				   const char *inner, const char *name, const char **file)
{
	for (size_t d = 0; d < n; d++) {
		const struct gpuq_val *l = gpuq_get(docs[d].root, list);

		for (uint32_t i = 0; l && l->type == GPUQ_LIST && i < l->n; i++) {
			if (strcmp(text_of(gpuq_get(l->items[i], "name")), name) != 0)
				continue;
			*file = docs[d].file;
			return gpuq_get(l->items[i], inner);
		}
	}
	return NULL;
}

/* Paths in a kubeconfig are relative to it. */
static const char *resolve(const struct reading *r, const char *path)
{
	const char *slash = strrchr(r->file, '/');

	if (!*path || *path == '/' || !slash)
		return path;
	return gpuq_arena_printf(&r->out->arena, "%.*s/%s", (int)(slash - r->file), r->file, path);
}

static int decode64(struct reading *r, const char *key, const char *in, struct kube_bytes *out)
{
	size_t n = strlen(in);
	EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
	unsigned char *data = gpuq_arena_alloc(&r->out->arena, n + 4);
	int got = 0, tail = 0, rc = 0;

	if (!ctx || !data || n > PEM_BYTES_MAX) {
		rc = gpuq_fail(r->err, GPUQ_ENOMEM, "%s: %s.%s: no memory", r->file, r->what, key);
		goto out;
	}
	EVP_DecodeInit(ctx);
	if (EVP_DecodeUpdate(ctx, data, &got, (const unsigned char *)in, (int)n) < 0 ||
	    EVP_DecodeFinal(ctx, data + got, &tail) < 0 || got + tail == 0) {
		rc = gpuq_fail(r->err, GPUQ_EINVAL, "%s: %s.%s: expected base64", r->file, r->what,
			       key);
		goto out;
	}
	data[got + tail] = '\0';
	out->data = (char *)data;
	out->n = (size_t)(got + tail);
out:
	EVP_ENCODE_CTX_free(ctx);
	return rc;
}

/* KEY-data holds the bytes, KEY a path to them; the first wins. */
static int pem(struct reading *r, const char *key, const char *data_key, struct kube_bytes *out,
	       const char **out_file)
{
	const char *data = text(r, data_key), *path = text(r, key);
	int rc;

	if (*data)
		return decode64(r, data_key, data, out);
	if (!*path)
		return 0;
	path = resolve(r, path);
	if (!path)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "%s: no memory", r->file);
	rc = kube_read_file(&r->out->arena, path, PEM_BYTES_MAX, out, r->err);
	if (rc != 0) {
		gpuq_err_prefix(r->err, "%s: %s.%s", r->file, r->what, key);
		return rc;
	}
	*out_file = path;
	return 0;
}

/* Plain http carries tokens in the clear, so it is for this machine only. */
static bool loopback(const char *server)
{
	static const char *const names[] = { "http://127.", "http://[::1]", "http://localhost" };
	struct in_addr addr;
	char host[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]), len;

		if (strncasecmp(server, names[i], n) != 0)
			continue;
		if (i > 0)
			return server[n] == '\0' || server[n] == ':' || server[n] == '/';
		/* 127.evil.example begins like an address; only an address is one */
		len = strcspn(server + 7, ":/");
		if (len >= sizeof(host))
			return false;
		memcpy(host, server + 7, len);
		host[len] = '\0';
		return inet_pton(AF_INET, host, &addr) == 1;
	}
	return false;
}

static int read_cluster(struct reading *r)
{
	struct kube_config *c = r->out;
	const char *server = text(r, "server");
	size_t n = strlen(server);

	while (n > 0 && server[n - 1] == '/')
		n--;
	if (strncasecmp(server, "https://", 8) != 0 && !loopback(server))
		return gpuq_fail(
			r->err, GPUQ_EINVAL,
			"%s: %s.server: expected https://HOST[:PORT], not '%s' (plain http "
			"only to this machine)",
			r->file, r->what, server);
	c->server = gpuq_arena_strndup(&c->arena, server, n);
	c->tls_server_name = text(r, "tls-server-name");
	c->proxy_url = text(r, "proxy-url");
	c->insecure = truth(r, "insecure-skip-tls-verify");
	if (!c->server)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "%s: no memory", r->file);
	return pem(r, "certificate-authority", "certificate-authority-data", &c->ca, &c->ca_file);
}

static int strings(struct reading *r, const char *key, struct gpuq_strlist *out)
{
	const struct gpuq_val *v = gpuq_get(r->obj, key);

	if (!v || v->type != GPUQ_LIST || v->n == 0)
		return 0;
	out->items = gpuq_arena_calloc(&r->out->arena, v->n, sizeof(*out->items));
	if (!out->items)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "%s: no memory", r->file);
	for (uint32_t i = 0; i < v->n; i++)
		out->items[i] = text_of(v->items[i]);
	out->n = v->n;
	return 0;
}

static int new_map(struct reading *r, size_t n, struct gpuq_strmap *out)
{
	out->keys = gpuq_arena_calloc(&r->out->arena, n, sizeof(*out->keys));
	out->vals = gpuq_arena_calloc(&r->out->arena, n, sizeof(*out->vals));
	out->n = 0;
	if (!out->keys || !out->vals)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "%s: no memory", r->file);
	return 0;
}

/* as-user-extra: {key: [values]} */
static int read_extra(struct reading *r)
{
	const struct gpuq_val *v = gpuq_get(r->obj, "as-user-extra");
	struct gpuq_strmap *out = &r->out->as_extra;
	size_t n = 0;
	int rc;

	if (!v || v->type != GPUQ_MAP)
		return 0;
	for (uint32_t i = 0; i < v->n; i++)
		n += v->pairs[i].val->type == GPUQ_LIST ? v->pairs[i].val->n : 0;
	rc = new_map(r, n, out);
	for (uint32_t i = 0; rc == 0 && i < v->n; i++) {
		const struct gpuq_val *list = v->pairs[i].val;

		for (uint32_t k = 0; list->type == GPUQ_LIST && k < list->n; k++) {
			out->keys[out->n] = v->pairs[i].key;
			out->vals[out->n++] = text_of(list->items[k]);
		}
	}
	return rc;
}

static int read_exec(struct reading *r)
{
	struct kube_exec *e = &r->out->exec;
	const struct gpuq_val *env = gpuq_get(r->obj, "env");
	const char *mode = text(r, "interactiveMode");
	int rc;

	e->command = text(r, "command");
	e->api_version = text(r, "apiVersion");
	e->hint = text(r, "installHint");
	e->give_cluster = truth(r, "provideClusterInfo");
	if (!*e->command)
		return gpuq_fail(r->err, GPUQ_EINVAL, "%s: %s.exec.command: expected a program",
				 r->file, r->what);
	if (strncmp(e->api_version, "client.authentication.k8s.io/v1", 31) != 0)
		return gpuq_fail(r->err, GPUQ_EINVAL,
				 "%s: %s.exec.apiVersion: expected "
				 "client.authentication.k8s.io/v1 (or v1beta1), not '%s'",
				 r->file, r->what, e->api_version);
	if (strcmp(mode, "Always") == 0)
		return gpuq_fail(r->err, GPUQ_EINVAL,
				 "%s: %s.exec.interactiveMode: a daemon has no terminal for Always",
				 r->file, r->what);
	if (strchr(e->command, '/'))
		e->command = resolve(r, e->command);
	rc = strings(r, "args", &e->args);
	if (rc != 0 || !env || env->type != GPUQ_LIST)
		return rc;
	rc = new_map(r, env->n, &e->env);
	for (uint32_t i = 0; rc == 0 && i < env->n; i++) {
		e->env.keys[i] = text_of(gpuq_get(env->items[i], "name"));
		e->env.vals[i] = text_of(gpuq_get(env->items[i], "value"));
		e->env.n++;
	}
	return rc;
}

static int read_user(struct reading *r)
{
	struct kube_config *c = r->out;
	const struct gpuq_val *exec = gpuq_get(r->obj, "exec");
	int rc = pem(r, "client-certificate", "client-certificate-data", &c->cert, &c->cert_file);

	if (rc == 0)
		rc = pem(r, "client-key", "client-key-data", &c->key, &c->key_file);
	if (rc == 0)
		rc = strings(r, "as-groups", &c->as_groups);
	if (rc == 0)
		rc = read_extra(r);
	if (rc != 0)
		return rc;
	if (!c->cert.data != !c->key.data)
		return gpuq_fail(r->err, GPUQ_EINVAL,
				 "%s: %s: client-certificate and client-key go together", r->file,
				 r->what);
	c->token = text(r, "token");
	c->username = text(r, "username");
	c->password = text(r, "password");
	c->as_user = text(r, "as");
	c->as_uid = text(r, "as-uid");
	if (*text(r, "tokenFile"))
		c->token_file = resolve(r, text(r, "tokenFile"));
	if (gpuq_get(r->obj, "auth-provider"))
		return gpuq_fail(
			r->err, GPUQ_EINVAL,
			"%s: %s.auth-provider: Kubernetes has dropped it; use exec, a token "
			"or a client certificate",
			r->file, r->what);
	if (!exec || exec->type != GPUQ_MAP)
		return 0;
	r->obj = exec;
	return read_exec(r);
}

static const char *named(struct kube_config *c, const char *kind, const char *name)
{
	const char *s = gpuq_arena_printf(&c->arena, "%s %s", kind, name);

	return s ? s : kind;
}

int kubeconfig_read(const struct kubeconfig_doc *docs, size_t n, const char *context,
		    struct kube_config *out, struct gpuq_err *err)
{
	const char *file = n ? docs[0].file : "-", *cluster, *user;
	const struct gpuq_val *ctx;
	struct reading r = { .out = out, .err = err };
	int rc;

	out->origin = file;
	for (size_t i = 0; i < n && (!context || !*context); i++)
		context = text_of(gpuq_get(docs[i].root, "current-context"));
	if (!context || !*context)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%s: current-context is not set: choose one of its contexts",
				 file);
	ctx = find(docs, n, "contexts", "context", context, &file);
	if (!ctx)
		return gpuq_fail(err, GPUQ_ENOENT, "%s: no context '%s'", file, context);
	cluster = text_of(gpuq_get(ctx, "cluster"));
	user = text_of(gpuq_get(ctx, "user"));
	out->namespace_ = text_of(gpuq_get(ctx, "namespace"));

	r.obj = find(docs, n, "clusters", "cluster", cluster, &r.file);
	if (!r.obj)
		return gpuq_fail(err, GPUQ_ENOENT, "%s: context %s: no cluster '%s'", file, context,
				 cluster);
	r.what = named(out, "cluster", cluster);
	rc = read_cluster(&r);
	if (rc != 0)
		return rc;
	r.obj = find(docs, n, "users", "user", user, &r.file);
	if (!r.obj && *user)
		return gpuq_fail(err, GPUQ_ENOENT, "%s: context %s: no user '%s'", file, context,
				 user);
	r.what = named(out, "user", user);
	return r.obj ? read_user(&r) : 0;
}
