#include "gpuqd/cluster/kube/auth/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/cluster/kube/auth/kubeconfig.h"
#include "libgpuq/limits.h"
#include "libgpuq/yaml.h"

#define POD_DIR "/var/run/secrets/kubernetes.io/serviceaccount/"
#define FILES_MAX 32
#define PEM_BYTES_MAX (1u << 20)
#define ARENA_BYTES_MAX (64u << 20)

int kube_read_file(struct gpuq_arena *a, const char *path, size_t max, struct kube_bytes *out,
		   struct gpuq_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	struct stat st;
	char *data = NULL;
	size_t n = 0, room;
	ssize_t k;

	if (fd < 0)
		return gpuq_fail(err, errno == ENOENT ? GPUQ_ENOENT : GPUQ_EIO, "%s: %s", path,
				 strerror(errno));
	if (fstat(fd, &st) != 0 || S_ISDIR(st.st_mode)) {
		rc = gpuq_fail(err, GPUQ_EIO, "%s: not a file that can be read", path);
		goto out;
	}
	/* A pipe has no size; a file may grow while it is read. One byte more than the
	 * limit tells that there is more. */
	room = S_ISREG(st.st_mode) && st.st_size >= 0 && (size_t)st.st_size < max
		       ? (size_t)st.st_size + 1
		       : max + 1;
	data = gpuq_arena_alloc(a, room + 1);
	if (!data) {
		rc = gpuq_fail(err, GPUQ_ENOMEM, "%s: no memory", path);
		goto out;
	}
	while (n < room) {
		k = read(fd, data + n, room - n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	if (rc == 0 && n > max)
		rc = gpuq_fail(err, GPUQ_ETOOBIG, "%s: more than %zu bytes", path, max);
	if (rc == 0) {
		data[n] = '\0';
		out->data = data;
		out->n = n;
	}
out:
	close(fd);
	return rc;
}

/* Host and port as the kubelet gives them to every container. */
static bool in_cluster(void)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	return host && *host && port && *port && access(POD_DIR "token", R_OK) == 0;
}

static int load_in_cluster(struct kube_config *c, struct gpuq_err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	struct kube_bytes ns = { 0 };
	int rc;

	c->origin = "in-cluster";
	c->server = gpuq_arena_printf(
		&c->arena, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	c->ca_file = POD_DIR "ca.crt";
	c->token_file = POD_DIR "token";
	if (!c->server)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	rc = kube_read_file(&c->arena, c->ca_file, PEM_BYTES_MAX, &c->ca, err);
	if (rc != 0)
		return gpuq_err_prefix(err, "in-cluster credentials");
	if (kube_read_file(&c->arena, POD_DIR "namespace", 253, &ns, NULL) == 0)
		c->namespace_ = ns.data;
	return 0;
}

static int load_one(struct gpuq_arena *a, const char *path, struct kubeconfig_doc *out, bool *found,
		    struct gpuq_err *err)
{
	struct kube_bytes text = { 0 };
	struct gpuq_val **docs;
	size_t n_docs;
	int rc = kube_read_file(a, path, GPUQ_YAML_BYTES_MAX, &text, err);

	*found = rc == 0;
	if (rc != 0)
		return rc;
	rc = gpuq_yaml_parse(a, path, text.data, text.n, &docs, &n_docs, err);
	if (rc != 0)
		return rc;
	if (n_docs == 0) {
		*found = false;
		return 0;
	}
	if (n_docs != 1 || docs[0]->type != GPUQ_MAP)
		return gpuq_fail(err, GPUQ_EINVAL, "%s: expected one kubeconfig (a map)", path);
	*out = (struct kubeconfig_doc){ .file = path, .root = docs[0] };
	return 0;
}

/* The files of a colon-separated list; those that do not exist are passed over, as
 * long as one does. */
static int load_list(const char *list, const char *context, struct kube_config *c,
		     struct gpuq_err *err)
{
	struct kubeconfig_doc docs[FILES_MAX];
	char *rest = gpuq_arena_strdup(&c->arena, list), *path;
	size_t n = 0;
	int rc;

	while (rest && (path = strsep(&rest, ":")) != NULL) {
		bool found;

		if (!*path)
			continue;
		if (n == FILES_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "KUBECONFIG names more than %d files",
					 FILES_MAX);
		rc = load_one(&c->arena, path, &docs[n], &found, err);
		if (rc != 0 && rc != GPUQ_ENOENT)
			return rc;
		if (found)
			n++;
	}
	if (n == 0)
		return gpuq_fail(err, GPUQ_ENOENT, "no kubeconfig at %s", list);
	return kubeconfig_read(docs, n, context, c, err);
}

static int load(const char *path, const char *context, struct kube_config *c, struct gpuq_err *err)
{
	const char *env = getenv("KUBECONFIG"), *home = getenv("HOME");
	struct kubeconfig_doc doc;
	char *own;
	bool found;
	int rc;

	if (path) {
		rc = load_one(&c->arena, path, &doc, &found, err);
		if (rc != 0)
			return rc;
		return kubeconfig_read(&doc, found ? 1 : 0, context, c, err);
	}
	if (env && *env)
		return load_list(env, context, c, err);
	if (in_cluster())
		return load_in_cluster(c, err);
	own = home ? gpuq_arena_printf(&c->arena, "%s/.kube/config", home) : NULL;
	if (own && access(own, R_OK) == 0)
		return load_list(own, context, c, err);
	return gpuq_fail(err, GPUQ_ENOENT,
			 "no credentials for a cluster: give --kubeconfig FILE, or set KUBECONFIG");
}

int kube_config_load(const char *path, const char *context, struct kube_config *out,
		     struct gpuq_err *err)
{
	struct kube_config c = { .arena = GPUQ_ARENA_INIT(ARENA_BYTES_MAX), KUBE_CONFIG_NONE };
	int rc = load(path, context, &c, err);

	if (rc != 0) {
		gpuq_arena_done(&c.arena);
		return rc;
	}
	*out = c;
	return 0;
}

static int reload(struct kube_config *c, const char *file, struct kube_bytes *at,
		  struct gpuq_err *err)
{
	struct gpuq_arena tmp = GPUQ_ARENA_INIT(2 * PEM_BYTES_MAX);
	struct kube_bytes now = { 0 };
	int rc = 0;

	if (!file)
		return 0;
	rc = kube_read_file(&tmp, file, PEM_BYTES_MAX, &now, err);
	/* Only a change is kept, because the arena never shrinks. */
	if (rc == 0 && (now.n != at->n || memcmp(now.data, at->data, now.n) != 0)) {
		now.data = gpuq_arena_strndup(&c->arena, now.data, now.n);
		if (now.data)
			*at = now;
		else
			rc = gpuq_fail(err, GPUQ_ENOMEM, "%s: no memory", file);
	}
	gpuq_arena_done(&tmp);
	return rc;
}

int kube_config_reload(struct kube_config *c, struct gpuq_err *err)
{
	int rc = reload(c, c->ca_file, &c->ca, err);

	if (rc == 0)
		rc = reload(c, c->cert_file, &c->cert, err);
	if (rc == 0)
		rc = reload(c, c->key_file, &c->key, err);
	return rc;
}

void kube_config_done(struct kube_config *c)
{
	gpuq_arena_done(&c->arena);
}
