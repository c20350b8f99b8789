/* gpuq login, logout, whoami: servers on other machines, and who they take us for. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/site/device_login.h"
#include "gpuq/command.h"
#include "gpuq/out.h"
#include "gpuq/server.h"
#include "gpuq/servers.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/limits.h"

#define ANSWER_BYTES 64

static struct gpuq_connect_opts opts_of(struct cli *c, const struct servers_entry *e)
{
	return (struct gpuq_connect_opts){ .addr = e->address,
					   .client = PACKAGE_NAME "/" PACKAGE_VERSION,
					   .stop_fd = -1,
					   .pin = e->pin,
					   .ca = e->ca,
					   .cert = e->cert,
					   .key = e->key,
					   .token = e->token,
					   .module = servers_module(&c->arena) };
}

/* The argument, else the first address that is found. */
static int address(struct cli *c, const char **out, struct gpuq_err *err)
{
	struct server_places places;
	int rc;

	if (c->args.n_rest > 0) {
		*out = c->args.rest[0];
	} else {
		rc = server_find(&c->arena, c->args.val[OPT_SERVER], &places, err);
		if (rc < 0)
			return rc;
		*out = places.addr[0];
	}
	if (strncmp(*out, "tls://", 6) == 0)
		return 0;
	return gpuq_fail(
		err, GPUQ_EINVAL,
		"%s: login is for tls:// servers only; other servers identify the user themselves",
		*out);
}

/* A line of the terminal, without echo where it is secret. */
static bool ask(const char *question, bool secret, char *out, size_t size)
{
	struct termios was, quiet;
	const bool hide = secret && tcgetattr(0, &was) == 0;
	bool got;

	fprintf(stderr, "%s", question);
	fflush(stderr);
	if (hide) {
		quiet = was;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(0, TCSAFLUSH, &quiet);
	}
	got = fgets(out, (int)size, stdin) != NULL;
	if (hide) {
		tcsetattr(0, TCSAFLUSH, &was);
		fputc('\n', stderr);
	}
	if (got)
		out[strcspn(out, "\r\n")] = '\0';
	return got;
}

/* Is the server the one it should be? Its pin is requested where no CA vouches for it. */
static int know_server(struct cli *c, struct servers_entry *e, struct gpuq_err *err)
{
	struct gpuq_connect_opts o = opts_of(c, e);
	struct gpuq_err first = GPUQ_ERR_INIT;
	char answer[ANSWER_BYTES];
	struct gpuq *g = NULL;
	const char *pin;
	int rc;

	o.no_hello = true;
	rc = gpuq_connect_opts(&o, &g, &first);
	if (rc == 0 && strchr(e->address, '?'))
		e->pin = gpuq_arena_strdup(&c->arena, gpuq_server_pin(g));
	gpuq_close(g);
	if (rc == 0)
		return 0;
	*err = first;
	if (rc != GPUQ_EAUTH || e->ca || e->pin || strchr(e->address, '?'))
		return rc;
	g = NULL;
	o.pin = "";
	rc = gpuq_connect_opts(&o, &g, err);
	if (rc < 0)
		return rc;
	pin = gpuq_arena_strdup(&c->arena, gpuq_server_pin(g));
	gpuq_close(g);
	if (!pin)
		return gpuq_no_memory(err);
	if (!isatty(0))
		return gpuq_fail(
			err, GPUQ_EAUTH,
			"%s: no CA that is known here vouches for it; the pin of its key is %s: "
			"compare it with the one that gpuqd --make-cert printed, and give it as "
			"%s?pin=%s",
			e->address, pin, e->address, pin);
	cli_say("no CA that is known here vouches for %s", e->address);
	cli_say("the pin of its key is %s, as gpuqd --make-cert prints it", pin);
	if (!ask("Trust it (yes/no)? ", false, answer, sizeof(answer)) ||
	    strcmp(answer, "yes") != 0)
		return gpuq_fail(err, GPUQ_EAUTH, "%s: not trusted", e->address);
	e->pin = pin;
	return 0;
}

static int find_token(struct cli *c, struct servers_entry *e, struct gpuq_err *err)
{
	const char *file = c->args.val[OPT_TOKEN_FILE], *issuer = c->args.val[OPT_ISSUER];
	const struct gpuq_connect_opts o = opts_of(c, e);
	char line[GPUQ_CREDENTIAL_BYTES_MAX + 2];
	int rc = issuer ? 0
			: servers_token(&c->arena, file ? file : servers_given.token_file,
					&e->token, err);

	if (rc != 0 || (e->cert && !issuer))
		return rc < 0 ? rc : 0;
	rc = device_login(&c->arena, &o, issuer, &e->token, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (!isatty(0))
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"no token, and the server has no logins in a browser: give a token by "
			"--token-file, $GPUQ_TOKEN_FILE or $GPUQ_TOKEN");
	if (!ask("Token: ", true, line, sizeof(line)) || !*line)
		return gpuq_fail(err, GPUQ_EINVAL, "no token was given");
	e->token = gpuq_arena_strdup(&c->arena, line);
	explicit_bzero(line, sizeof(line));
	return e->token ? 0 : gpuq_no_memory(err);
}

static void say_who(const struct gpuq_val *info, const char *where)
{
	struct gpuq_buf text = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;
	const struct gpuq_val *scopes = gpuq_get(info, "scopes");
	const char *queues = gpuq_get_str(info, "queues", "");

	gpuq_buf_printf(&text, "%s, %s%s%s, by %s", gpuq_get_str(info, "user", "?"),
			gpuq_get_str(info, "role", "?"), where ? " at " : "", where ? where : "",
			gpuq_get_str(info, "auth", "?"));
	if (scopes && scopes->type == GPUQ_LIST) {
		gpuq_buf_adds(&text, "; scopes ");
		for (uint32_t i = 0; i < scopes->n; i++)
			gpuq_buf_printf(&text, "%s%s", i ? "," : "", scopes->items[i]->s);
	}
	if (*queues)
		gpuq_buf_printf(&text, "; queues %s", queues);
	if (gpuq_get(info, "expires_time")) {
		gpuq_buf_adds(&text, "; expires ");
		view_time(&text, gpuq_get(info, "expires_time"));
	}
	term_clean_str(&clean, gpuq_buf_str(&text));
	puts(gpuq_buf_str(&clean));
	gpuq_buf_done(&text);
	gpuq_buf_done(&clean);
}

int cmd_login(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct servers_entry e;
	struct gpuq_connect_opts o;
	struct gpuq *g = NULL;
	const char *addr;
	int rc = address(c, &addr, &err);

	if (rc == 0)
		rc = servers_find(&c->arena, addr, &e, &err);
	if (rc == 0) {
		e.address = addr;
		e.ca = c->args.val[OPT_CA] ? c->args.val[OPT_CA]
		       : servers_given.ca  ? servers_given.ca
					   : e.ca;
		e.cert = c->args.val[OPT_CERT] ? c->args.val[OPT_CERT] : e.cert;
		e.key = c->args.val[OPT_CERT_KEY] ? c->args.val[OPT_CERT_KEY] : e.key;
		e.token = NULL;
		rc = know_server(c, &e, &err);
	}
	if (rc == 0)
		rc = find_token(c, &e, &err);
	if (rc == 0) {
		o = opts_of(c, &e);
		rc = gpuq_connect_opts(&o, &g, &err);
	}
	if (rc == 0)
		rc = servers_put(&c->arena, &e, &err);
	if (rc == 0)
		say_who(gpuq_server_info(g), addr);
	gpuq_close(g);
	return rc < 0 ? cli_fail(&err, false) : EXIT_DONE;
}

int cmd_logout(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *addr;
	int rc = address(c, &addr, &err);

	if (rc == 0)
		rc = servers_forget(&c->arena, addr, &err);
	if (rc < 0)
		return cli_fail(&err, false);
	if (rc == 0) {
		cli_say("%s: not logged in", addr);
		return EXIT_REFUSED;
	}
	printf("Logged out of %.*s; gpuq token revoke ends a token for good\n",
	       (int)strcspn(addr, "?"), addr);
	return EXIT_DONE;
}

int cmd_whoami(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = gpuq_map(&c->arena);
	static const char *const keys[] = { "user",   "role",       "auth",        "scopes",
					    "queues", "credential", "expires_time" };
	const struct gpuq_val *info;

	if (cli_connect(c, &err) < 0)
		return cli_fail(&err, false);
	info = gpuq_server_info(c->conn);
	if (!opt_given(&c->args, OPT_JSON)) {
		say_who(info, NULL);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct gpuq_val *x = gpuq_get(info, keys[i]);

		gpuq_put(&c->arena, v, keys[i],
			 x ? gpuq_val_copy(&c->arena, x) : gpuq_null(&c->arena));
	}
	return out_json(v) < 0 ? EXIT_REFUSED : EXIT_DONE;
}
