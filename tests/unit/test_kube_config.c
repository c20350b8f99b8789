#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/auth/config.h"
#include "gpuqd/cluster/kube/auth/creds.h"
#include "gpuqd/cluster/kube/auth/exec_plugin.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static char dir[] = "/tmp/gpuq-kube-config-XXXXXX";

static const char *path(const char *name)
{
	static char p[4][256];
	static unsigned i;
	char *out = p[i++ % 4];

	snprintf(out, sizeof(p[0]), "%s/%s", dir, name);
	return out;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(path(name), "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void init(void)
{
	cr_assert_not_null(mkdtemp(dir));
	unsetenv("KUBECONFIG");
	unsetenv("KUBERNETES_SERVICE_HOST");
	setenv("HOME", dir, 1);
}

static void fini(void)
{
	static const char *const all[] = { "a", "b", "ca.pem", "token", "plugin", "count" };

	for (size_t i = 0; i < N(all); i++)
		unlink(path(all[i]));
	unlink(path(".kube/config"));
	rmdir(path(".kube"));
	rmdir(dir);
}

#define A                                                                                          \
	"apiVersion: v1\nkind: Config\ncurrent-context: dev\n"                                     \
	"clusters:\n- name: c1\n  cluster: {server: 'https://one:6443/', certificate-authority: "  \
	"ca.pem}\n"                                                                                \
	"contexts:\n- name: dev\n  context: {cluster: c1, user: u1, namespace: ml}\n"              \
	"- name: prod\n  context: {cluster: c2, user: u2}\n"                                       \
	"users:\n- name: u1\n  user: {token: 12345, tokenFile: token}\n"
#define B                                                                                          \
	"current-context: other\n"                                                                 \
	"clusters:\n- name: c1\n  cluster: {server: 'https://never:1'}\n"                          \
	"- name: c2\n  cluster: {server: 'https://two', insecure-skip-tls-verify: true,"           \
	" tls-server-name: api, certificate-authority-data: UEVN}\n"                               \
	"users:\n- name: u2\n  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ, "  \
	"as: eve,"                                                                                 \
	" as-groups: [g1, g2], as-user-extra: {k: [v, w]}}\n"

Test(kube_config, reads_a_file, .init = init, .fini = fini)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct kube_config c;

	put("a", A);
	put("ca.pem", "PEM of one");
	cr_assert_eq(kube_config_load(path("a"), NULL, &c, &err), 0, "%s", err.text);
	cr_expect_str_eq(c.server, "https://one:6443");
	cr_expect_str_eq(c.namespace_, "ml");
	cr_expect_str_eq(c.token, "12345");
	cr_expect_str_eq(c.token_file, path("token"));
	cr_expect_str_eq(c.ca.data, "PEM of one");
	put("ca.pem", "another");
	cr_expect_eq(kube_config_reload(&c, &err), 0);
	cr_expect_str_eq(c.ca.data, "another");
	unlink(path("ca.pem"));
	cr_expect_neq(kube_config_reload(&c, &err), 0);
	cr_expect_str_eq(c.ca.data, "another", "what cannot be read stays");
	kube_config_done(&c);
}

Test(kube_config, merges_a_list_of_files, .init = init, .fini = fini)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct kube_config c;
	char list[600];

	put("a", A);
	put("b", B);
	put("ca.pem", "x");
	snprintf(list, sizeof(list), "%s:%s::%s", path("none"), path("a"), path("b"));
	setenv("KUBECONFIG", list, 1);
	cr_assert_eq(kube_config_load(NULL, NULL, &c, &err), 0, "%s", err.text);
	cr_expect_str_eq(c.server, "https://one:6443", "the first file that names it wins");
	kube_config_done(&c);
	cr_assert_eq(kube_config_load(NULL, "prod", &c, &err), 0, "%s", err.text);
	cr_expect_str_eq(c.server, "https://two");
	cr_expect_str_eq(c.tls_server_name, "api");
	cr_expect(c.insecure);
	cr_expect_str_eq(c.namespace_, "");
	cr_expect_str_eq(c.ca.data, "PEM");
	cr_expect_str_eq(c.cert.data, "CERT");
	cr_expect_str_eq(c.key.data, "KEY");
	cr_expect_str_eq(c.as_user, "eve");
	cr_expect_eq(c.as_groups.n, 2);
	cr_assert_eq(c.as_extra.n, 2);
	cr_expect_str_eq(c.as_extra.vals[1], "w");
	kube_config_done(&c);
}

Test(kube_config, looks_at_home_last, .init = init, .fini = fini)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct kube_config c;

	cr_expect_eq(kube_config_load(NULL, NULL, &c, &err), GPUQ_ENOENT);
	cr_expect(strstr(err.text, "--kubeconfig") != NULL);
	mkdir(path(".kube"), 0700);
	put(".kube/config", B "contexts:\n- {name: other, context: {cluster: c2, user: u2}}\n");
	cr_assert_eq(kube_config_load(NULL, NULL, &c, &err), 0, "%s", err.text);
	cr_expect_str_eq(c.server, "https://two");
	kube_config_done(&c);
}

#define ONE(cluster, user)                                                                         \
	"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"              \
	"clusters: [{name: c, cluster: {" cluster "}}]\nusers: [{name: u, user: {" user "}}]\n"

static const struct {
	const char *text;
	int rc;
	const char *words;
} refused[] = {
	{ "[1]", GPUQ_EINVAL, "expected one kubeconfig" },
	{ "a: [", GPUQ_EINVAL, ":1:" },
	{ "{}", GPUQ_EINVAL, "current-context" },
	{ "current-context: x", GPUQ_ENOENT, "no context 'x'" },
	{ "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", GPUQ_ENOENT,
	  "no cluster 'c'" },
	{ ONE("server: 'http://example.com'", ""), GPUQ_EINVAL, "https://" },
	{ ONE("server: 'http://127.evil.example'", ""), GPUQ_EINVAL, "https://" },
	{ ONE("server: 'http://localhost.example'", ""), GPUQ_EINVAL, "https://" },
	{ ONE("", ""), GPUQ_EINVAL, "cluster c.server" },
	{ ONE("server: 'https://h', certificate-authority-data: '*'", ""), GPUQ_EINVAL, "base64" },
	{ ONE("server: 'https://h', certificate-authority: /none/such", ""), GPUQ_ENOENT,
	  "cluster c.certificate-authority" },
	{ ONE("server: 'https://h'", "client-key-data: S0VZ"), GPUQ_EINVAL, "go together" },
	{ ONE("server: 'https://h'", "auth-provider: {name: gcp}"), GPUQ_EINVAL, "auth-provider" },
	{ ONE("server: 'https://h'", "exec: {apiVersion: client.authentication.k8s.io/v1}"),
	  GPUQ_EINVAL, "exec.command" },
	{ ONE("server: 'https://h'", "exec: {command: p, apiVersion: v9}"), GPUQ_EINVAL,
	  "exec.apiVersion" },
	{ ONE("server: 'https://h'",
	      "exec: {command: p, apiVersion: client.authentication.k8s.io/v1,"
	      " interactiveMode: Always}"),
	  GPUQ_EINVAL, "terminal" },
};

Test(kube_config, refuses_with_a_place, .init = init, .fini = fini)
{
	for (size_t i = 0; i < N(refused); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct kube_config c = { .server = "untouched" };

		put("a", refused[i].text);
		cr_expect_eq(kube_config_load(path("a"), NULL, &c, &err), refused[i].rc, "%s: %s",
			     refused[i].text, err.text);
		cr_expect(strstr(err.text, refused[i].words) != NULL, "%s: %s", refused[i].text,
			  err.text);
		cr_expect(strstr(err.text, path("a")) != NULL, "%s", err.text);
		cr_expect_str_eq(c.server, "untouched");
	}
}

Test(kube_config, takes_plain_http_to_this_machine, .init = init, .fini = fini)
{
	static const char *const servers[] = { "http://127.0.0.1:8080", "http://[::1]:80",
					       "http://localhost:1", "HTTPS://h" };

	for (size_t i = 0; i < N(servers); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct kube_config c;
		char text[512];

		snprintf(text, sizeof(text), ONE("server: '%s'", ""), servers[i]);
		put("a", text);
		cr_assert_eq(kube_config_load(path("a"), NULL, &c, &err), 0, "%s", err.text);
		kube_config_done(&c);
	}
}

/* ---- credentials ---- */

static struct loop *loop;
static struct gpuq_err told;
static int tellings;

static void on_creds(void *arg, const struct gpuq_err *err)
{
	tellings++;
	told = err ? *err : (struct gpuq_err)GPUQ_ERR_INIT;
	loop_stop(loop, 0);
}

/* A loop that has been stopped runs no more, so each wait has one of its own. */
static struct creds *begin(struct kube_config *c, const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct creds *creds;

	log_init(LOG_L_ERR);
	put("a", text);
	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(kube_config_load(path("a"), NULL, c, &err), 0, "%s", err.text);
	cr_assert_eq(creds_new(loop, c, on_creds, NULL, &creds, &err), 0);
	return creds;
}

static void end(struct creds *creds, struct kube_config *c)
{
	creds_free(creds);
	kube_config_done(c);
	loop_free(loop);
}

Test(kube_creds, a_token_file_is_read_again, .init = init, .fini = fini)
{
	struct kube_config c;
	struct creds *creds = begin(&c, ONE("server: 'https://h'", "token: old, tokenFile: token"));
	struct creds_view *v, *w;

	put("token", "first\n");
	v = creds_get(creds);
	cr_assert_not_null(v);
	cr_expect_str_eq(v->token, "first");
	cr_expect_not(creds_refused(creds, v), "the file still says the same");
	put("token", "second");
	cr_expect(creds_refused(creds, v));
	w = creds_get(creds);
	cr_expect_str_eq(w->token, "second");
	cr_expect_str_eq(v->token, "first", "a request keeps what it began with");
	cr_expect(creds_refused(creds, v), "it has been renewed already");
	creds_put(v);
	creds_put(w);
	end(creds, &c);
}

Test(kube_creds, a_token_beside_a_lost_file_serves, .init = init, .fini = fini)
{
	struct kube_config c;
	struct creds *creds = begin(&c, ONE("server: 'https://h'", "token: old, tokenFile: none"));
	struct creds_view *v = creds_get(creds);

	cr_assert_not_null(v);
	cr_expect_str_eq(v->token, "old");
	creds_put(v);
	end(creds, &c);
}

#define PLUGIN                                                                                     \
	ONE("server: 'https://h'",                                                                 \
	    "exec: {command: ./plugin, args: [one], env: [{name: E, value: f}],"                   \
	    " apiVersion: client.authentication.k8s.io/v1, provideClusterInfo: true,"              \
	    " installHint: get it}")

static void plugin(const char *text)
{
	put("plugin", text);
	chmod(path("plugin"), 0700);
}

Test(kube_creds, a_plugin_gives_a_token, .init = init, .fini = fini, .timeout = 20)
{
	struct kube_config c;
	struct creds *creds;
	struct creds_view *v;

	plugin("#!/bin/sh\n"
	       "test \"$1$E\" = onef || exit 3\n"
	       "case $KUBERNETES_EXEC_INFO in *'\"server\":\"https://h\"'*) ;; *) exit 4;; esac\n"
	       "echo "
	       "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
	       "\"status\":{\"token\":\"from-plugin\",\"expirationTimestamp\":\"2100-01-01T00:00:"
	       "00Z\"}}'\n");
	creds = begin(&c, PLUGIN);
	cr_expect_null(creds_get(creds));
	cr_expect_null(creds_get(creds), "one run serves both");
	loop_run(loop);
	cr_expect_eq(tellings, 1);
	cr_expect_str_eq(told.text, "");
	v = creds_get(creds);
	cr_assert_not_null(v);
	cr_expect_str_eq(v->token, "from-plugin");
	cr_expect_not(creds_refused(creds, v), "fresh from the plugin: it would be refused again");
	creds_put(v);
	end(creds, &c);
}

static const struct {
	const char *text, *words;
} bad_plugins[] = {
	{ "#!/bin/sh\nexit 5\n", "exit code 5" },
	{ "#!/bin/sh\nkill -9 $$\n", "signal 9" },
	{ "#!/bin/sh\necho no\n", "ExecCredential" },
	{ "#!/bin/sh\necho "
	  "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
	  "v1beta1\"}'\n",
	  "client.authentication.k8s.io/v1" },
	{ "#!/bin/sh\necho "
	  "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
	  "v1\",\"status\":{}}'\n",
	  "neither" },
	{ "#!/bin/sh\nhead -c 400000 /dev/zero\n", "more output" },
};

Test(kube_creds, a_plugin_that_fails_is_told, .init = init, .fini = fini, .timeout = 20)
{
	for (size_t i = 0; i < N(bad_plugins); i++) {
		struct kube_config c;
		struct creds *creds;

		plugin(bad_plugins[i].text);
		creds = begin(&c, PLUGIN);
		cr_expect_null(creds_get(creds));
		loop_run(loop);
		cr_expect(strstr(told.text, bad_plugins[i].words) != NULL, "%s: %s",
			  bad_plugins[i].words, told.text);
		end(creds, &c);
	}
}

Test(kube_creds, a_plugin_that_is_not_there_is_told, .init = init, .fini = fini, .timeout = 20)
{
	struct kube_config c;
	struct creds *creds = begin(&c, PLUGIN);

	cr_expect_null(creds_get(creds));
	loop_run(loop);
	cr_expect(strstr(told.text, "get it") != NULL, "%s", told.text);
	end(creds, &c);
}

/* Freeing it while the plugin runs leaves no process and calls no callback. */
Test(kube_creds, is_freed_while_the_plugin_runs, .init = init, .fini = fini, .timeout = 20)
{
	struct kube_config c;
	struct creds *creds;

	plugin("#!/bin/sh\nexec sleep 1000\n");
	creds = begin(&c, PLUGIN);
	cr_expect_null(creds_get(creds));
	end(creds, &c);
	cr_expect_eq(tellings, 0);
}
