#include <config.h>

#include "gpuqd/cluster/kube/auth/exec_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>
#include <openssl/evp.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "libgpuq/buf.h"

#define OUTPUT_BYTES_MAX (256u << 10)
#define LIMIT_US (60 * INT64_C(1000000))
#define REAP_US INT64_C(20000)

extern char **environ;

struct exec_plugin {
	struct loop *loop;
	const struct kube_config *config;
	exec_plugin_fn fn;
	void *arg;
	pid_t pid;
	int fd;
	struct event *ev;
	struct loop_timer *limit, *reap;
	struct gpuq_buf out;
};

int exec_plugin_parse(const char *json, size_t n, const char *api_version, struct gpuq_arena *room,
		      struct exec_creds *out, struct gpuq_err *err)
{
	json_error_t why;
	json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why), *st;
	struct exec_creds c;
	int rc = 0;

	if (!root)
		return gpuq_fail(err, GPUQ_EINVAL, "it printed no ExecCredential: %s", why.text);
	st = json_object_get(root, "status");
	if (strcmp(kube_str(root, "kind"), "ExecCredential") != 0 ||
	    strcmp(kube_str(root, "apiVersion"), api_version) != 0) {
		rc = gpuq_fail(err, GPUQ_EINVAL, "expected an ExecCredential of %s", api_version);
		goto out;
	}
	c.token = gpuq_arena_strdup(room, kube_str(st, "token"));
	c.cert_pem = gpuq_arena_strdup(room, kube_str(st, "clientCertificateData"));
	c.key_pem = gpuq_arena_strdup(room, kube_str(st, "clientKeyData"));
	c.expires_us = kube_time_us(kube_str(st, "expirationTimestamp"));
	if (!c.token || !c.cert_pem || !c.key_pem)
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	else if (!*c.token && !(*c.cert_pem && *c.key_pem))
		rc = gpuq_fail(err, GPUQ_EINVAL, "it gave neither a token nor a certificate");
	else
		*out = c;
out:
	json_decref(root);
	return rc;
}

static void free_plugin(struct exec_plugin *p)
{
	if (p->ev)
		event_free(p->ev);
	if (p->fd >= 0)
		close(p->fd);
	loop_cancel(p->limit);
	loop_cancel(p->reap);
	gpuq_buf_done(&p->out);
	free(p);
}

static void finish(struct exec_plugin *p, int status)
{
	struct gpuq_arena room = GPUQ_ARENA_INIT(4 * OUTPUT_BYTES_MAX);
	const struct kube_exec *e = &p->config->exec;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct exec_creds creds;
	int rc = 0;

	if (p->out.failed)
		rc = gpuq_fail(&err, GPUQ_ETOOBIG, "more output than a credential has");
	else if (WIFSIGNALED(status))
		rc = gpuq_fail(&err, GPUQ_EIO, "killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		rc = gpuq_fail(&err, GPUQ_EIO, "exit code %d%s%s", WEXITSTATUS(status),
			       WEXITSTATUS(status) == 127 && *e->hint ? ": " : "",
			       WEXITSTATUS(status) == 127 ? e->hint : "");
	else
		rc = exec_plugin_parse(p->out.data, p->out.len, e->api_version, &room, &creds,
				       &err);
	if (rc != 0)
		gpuq_err_prefix(&err, "credential plugin %s", e->command);
	p->fn(p->arg, rc == 0 ? &creds : NULL, &err);
	gpuq_arena_done(&room);
	free_plugin(p);
}

/* Its output has ended; it may take a moment more to end itself. */
static void on_reap(void *arg)
{
	struct exec_plugin *p = arg;
	int status = 0;
	pid_t got = waitpid(p->pid, &status, WNOHANG);

	p->reap = NULL;
	if (got == 0) {
		p->reap = loop_after(p->loop, REAP_US, on_reap, p);
		return;
	}
	p->pid = -1;
	finish(p, status);
}

static void on_limit(void *arg)
{
	struct exec_plugin *p = arg;

	p->limit = NULL;
	if (p->pid > 0)
		kill(-p->pid, SIGKILL);
	/* Something it started elsewhere may hold the pipe open for ever. */
	if (!p->reap)
		p->reap = loop_after(p->loop, REAP_US, on_reap, p);
	if (p->ev)
		event_del(p->ev);
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
	struct exec_plugin *p = arg;
	char chunk[8192];
	ssize_t n = read(fd, chunk, sizeof(chunk));

	(void)what;
	if (n > 0) {
		gpuq_buf_add(&p->out, chunk, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	event_del(p->ev);
	if (!p->reap)
		p->reap = loop_after(p->loop, 0, on_reap, p);
}

static json_t *base64(const struct kube_bytes *b)
{
	unsigned char *text = malloc(4 * ((b->n + 2) / 3) + 1);
	json_t *v = NULL;

	if (text) {
		EVP_EncodeBlock(text, (const unsigned char *)b->data, (int)b->n);
		v = json_string((const char *)text);
		free(text);
	}
	return v;
}

/* The text of KUBERNETES_EXEC_INFO; freed by the caller. */
static char *exec_info(const struct kube_config *c)
{
	json_t *root = json_pack("{s:s, s:s, s:{s:b}}", "apiVersion", c->exec.api_version, "kind",
				 "ExecCredential", "spec", "interactive", 0);
	char *text;

	if (c->exec.give_cluster) {
		json_t *cl = json_pack("{s:s}", "server", c->server);

		if (*c->tls_server_name)
			json_object_set_new(cl, "tls-server-name", json_string(c->tls_server_name));
		if (c->insecure)
			json_object_set_new(cl, "insecure-skip-tls-verify", json_true());
		if (c->ca.data)
			json_object_set_new(cl, "certificate-authority-data", base64(&c->ca));
		if (*c->proxy_url)
			json_object_set_new(cl, "proxy-url", json_string(c->proxy_url));
		json_object_set_new(json_object_get(root, "spec"), "cluster", cl);
	}
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}

static bool overridden(const char *entry, const struct kube_exec *e)
{
	size_t n = strcspn(entry, "=");

	if (strncmp(entry, "KUBERNETES_EXEC_INFO=", 21) == 0)
		return true;
	for (size_t i = 0; i < e->env.n; i++)
		if (strlen(e->env.keys[i]) == n && memcmp(entry, e->env.keys[i], n) == 0)
			return true;
	return false;
}

static char **make_env(struct gpuq_arena *a, const struct kube_config *c)
{
	char *info = exec_info(c), **env;
	size_t n = 0, at = 0;

	while (environ[n])
		n++;
	env = gpuq_arena_calloc(a, n + c->exec.env.n + 2, sizeof(*env));
	for (size_t i = 0; env && i < n; i++)
		if (!overridden(environ[i], &c->exec))
			env[at++] = environ[i];
	for (size_t i = 0; env && i < c->exec.env.n; i++)
		env[at++] = gpuq_arena_printf(a, "%s=%s", c->exec.env.keys[i], c->exec.env.vals[i]);
	if (env)
		env[at] = gpuq_arena_printf(a, "KUBERNETES_EXEC_INFO=%s", info ? info : "{}");
	free(info);
	return env;
}

static int spawn(struct exec_plugin *p, int write_end, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct kube_exec *e = &p->config->exec;
	char **argv = gpuq_arena_calloc(&a, e->args.n + 2, sizeof(*argv));
	char **env = make_env(&a, p->config);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc = ENOMEM;

	if (!argv || !env)
		goto out;
	argv[0] = (char *)e->command;
	for (size_t i = 0; i < e->args.n; i++)
		argv[i + 1] = (char *)e->args.items[i];
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	sigaddset(&none, SIGPIPE);
	posix_spawnattr_setsigdefault(&attr, &none);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, write_end, 1);
	rc = posix_spawnp(&p->pid, e->command, &files, &attr, argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
out:
	gpuq_arena_done(&a);
	if (rc == 0)
		return 0;
	p->pid = -1;
	return gpuq_fail(err, GPUQ_EIO, "credential plugin %s: %s%s%s", e->command, strerror(rc),
			 *e->hint ? ": " : "", e->hint);
}

int exec_plugin_start(struct loop *l, const struct kube_config *c, exec_plugin_fn fn, void *arg,
		      struct exec_plugin **out, struct gpuq_err *err)
{
	struct exec_plugin *p = calloc(1, sizeof(*p));
	int ends[2] = { -1, -1 }, rc;

	if (!p)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	p->loop = l;
	p->config = c;
	p->fn = fn;
	p->arg = arg;
	p->pid = p->fd = -1;
	p->out.max_bytes = OUTPUT_BYTES_MAX;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		rc = gpuq_fail(err, GPUQ_EIO, "no pipe: %s", strerror(errno));
		goto fail;
	}
	p->fd = ends[0];
	fcntl(p->fd, F_SETFL, O_NONBLOCK);
	p->ev = event_new(loop_base(l), p->fd, EV_READ | EV_PERSIST, on_output, p);
	if (!p->ev || event_add(p->ev, NULL) != 0) {
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
		goto fail;
	}
	rc = spawn(p, ends[1], err);
	if (rc != 0)
		goto fail;
	close(ends[1]);
	p->limit = loop_after(l, LIMIT_US, on_limit, p);
	*out = p;
	return 0;
fail:
	if (ends[1] >= 0)
		close(ends[1]);
	free_plugin(p);
	return rc;
}

void exec_plugin_cancel(struct exec_plugin *p)
{
	if (!p)
		return;
	if (p->pid > 0) {
		kill(-p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	free_plugin(p);
}
