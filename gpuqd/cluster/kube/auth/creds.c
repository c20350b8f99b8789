#include "gpuqd/cluster/kube/auth/creds.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/auth/exec_plugin.h"

#define TOKEN_BYTES_MAX (64u << 10)
#define SECOND_US INT64_C(1000000)
#define TOKEN_AGE_US (60 * SECOND_US) /* as client-go */
#define LEEWAY_US (10 * SECOND_US) /* renew that long before the end */
#define AGAIN_US (5 * SECOND_US) /* between two tries of a plugin or a file */

struct creds {
	struct loop *loop;
	struct kube_config *config;
	creds_fn fn;
	void *arg;
	struct creds_view *view; /* NULL = not yet, or used up */
	int64_t read_us; /* token file: when it was read, monotonic */
	int64_t expires_us; /* plugin: wall clock, 0 = never */
	int64_t reload_us, failed_us, got_us; /* monotonic */
	struct exec_plugin *plugin;
	struct loop_timer *tell; /* a failure to be reported */
	struct gpuq_err err;
};

void creds_put(struct creds_view *v)
{
	if (!v || --v->refs > 0)
		return;
	/* Not a secret of ours, but one that others can use. */
	if (v->token)
		explicit_bzero(v->token, strlen(v->token));
	if (v->own_key)
		explicit_bzero(v->own_key, strlen(v->own_key));
	free(v->token);
	free(v->own_cert);
	free(v->own_key);
	free(v);
}

static void trim(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && strchr(" \t\r\n", s[n - 1]))
		s[--n] = '\0';
}

static int set_view(struct creds *c, const char *token, const char *cert, const char *key)
{
	struct creds_view *v = calloc(1, sizeof(*v));

	if (!v)
		return GPUQ_ENOMEM;
	v->refs = 1;
	v->ca = c->config->ca;
	v->cert = c->config->cert;
	v->key = c->config->key;
	v->token = token && *token ? strdup(token) : NULL;
	if (cert && *cert && key && *key) {
		v->own_cert = strdup(cert);
		v->own_key = strdup(key);
		v->cert = (struct kube_bytes){ v->own_cert, strlen(cert) };
		v->key = (struct kube_bytes){ v->own_key, strlen(key) };
	}
	if ((token && *token && !v->token) || (v->cert.n && (!v->cert.data || !v->key.data))) {
		creds_put(v);
		return GPUQ_ENOMEM;
	}
	creds_put(c->view);
	c->view = v;
	return 0;
}

/* Returns whether there is a view to use afterwards. */
static bool read_token(struct creds *c)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(2 * TOKEN_BYTES_MAX);
	struct kube_bytes text = { 0 };
	int rc = kube_read_file(&a, c->config->token_file, TOKEN_BYTES_MAX, &text, &c->err);

	c->read_us = loop_mono_us(c->loop);
	if (rc == 0)
		trim((char *)text.data);
	if (rc == 0 && (!c->view || !c->view->token || strcmp(text.data, c->view->token) != 0))
		rc = set_view(c, text.data, NULL, NULL);
	/* A file that is being replaced, or a token beside it: the older one serves. */
	if (rc != 0 && !c->view && *c->config->token)
		rc = set_view(c, c->config->token, NULL, NULL);
	gpuq_arena_done(&a);
	return c->view != NULL;
}

static void on_tell(void *arg)
{
	struct creds *c = arg;

	c->tell = NULL;
	c->fn(c->arg, &c->err);
}

static void fail_later(struct creds *c)
{
	if (!c->tell)
		c->tell = loop_after(c->loop, 0, on_tell, c);
}

static void on_plugin(void *arg, const struct exec_creds *got, const struct gpuq_err *err)
{
	struct creds *c = arg;

	c->plugin = NULL;
	if (got && set_view(c, got->token, got->cert_pem, got->key_pem) == 0) {
		c->expires_us = got->expires_us;
		c->got_us = loop_mono_us(c->loop);
		c->fn(c->arg, NULL);
		return;
	}
	if (got)
		gpuq_fail(&c->err, GPUQ_ENOMEM, "no memory");
	else
		c->err = *err;
	c->failed_us = loop_mono_us(c->loop);
	log_warn("kube.credentials", "error=%s", LOGS(c->err.text));
	c->fn(c->arg, &c->err);
}

static void run_plugin(struct creds *c)
{
	if (c->plugin)
		return;
	if (c->failed_us && loop_mono_us(c->loop) - c->failed_us < AGAIN_US) {
		fail_later(c);
		return;
	}
	if (exec_plugin_start(c->loop, c->config, on_plugin, c, &c->plugin, &c->err) == 0)
		return;
	c->failed_us = loop_mono_us(c->loop);
	log_warn("kube.credentials", "error=%s", LOGS(c->err.text));
	fail_later(c);
}

int creds_new(struct loop *l, struct kube_config *config, creds_fn fn, void *arg,
	      struct creds **out, struct gpuq_err *err)
{
	struct creds *c = calloc(1, sizeof(*c));

	if (!c)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	c->loop = l;
	c->config = config;
	c->fn = fn;
	c->arg = arg;
	*out = c;
	return 0;
}

void creds_free(struct creds *c)
{
	if (!c)
		return;
	exec_plugin_cancel(c->plugin);
	loop_cancel(c->tell);
	creds_put(c->view);
	free(c);
}

struct creds_view *creds_get(struct creds *c)
{
	const struct kube_config *k = c->config;

	if (k->token_file) {
		if ((!c->view || loop_mono_us(c->loop) - c->read_us >= TOKEN_AGE_US) &&
		    !read_token(c)) {
			fail_later(c);
			return NULL;
		}
	} else if (k->exec.command) {
		bool old = c->view && c->expires_us &&
			   loop_wall_us(c->loop) >= c->expires_us - LEEWAY_US;

		if (!c->view || old) {
			run_plugin(c);
			/* Until it has really expired the old one still opens doors. */
			if (!c->view || loop_wall_us(c->loop) >= c->expires_us)
				return NULL;
		}
	} else if (!c->view && set_view(c, k->token, NULL, NULL) != 0) {
		gpuq_fail(&c->err, GPUQ_ENOMEM, "no memory");
		fail_later(c);
		return NULL;
	}
	c->view->refs++;
	return c->view;
}

bool creds_refused(struct creds *c, const struct creds_view *v)
{
	struct creds_view *before = c->view;

	if (v != before)
		return true;
	if (c->config->token_file) {
		read_token(c);
		return c->view != before;
	}
	if (c->config->exec.command) {
		/* One that was refused fresh from the plugin will be refused again. */
		if (loop_mono_us(c->loop) - c->got_us < AGAIN_US)
			return false;
		creds_put(c->view);
		c->view = NULL;
		return true;
	}
	return false;
}

void creds_tls_failed(struct creds *c)
{
	int64_t now = loop_mono_us(c->loop);
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (c->reload_us && now - c->reload_us < SECOND_US)
		return;
	c->reload_us = now;
	if (kube_config_reload(c->config, &err) != 0)
		log_warn("kube.certificates", "error=%s", LOGS(err.text));
	if (c->view)
		set_view(c, c->view->token, c->view->own_cert, c->view->own_key);
}
