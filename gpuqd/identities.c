#include "gpuqd/identities.h"

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdlib.h>

#include "gpuqd/auth/auth.h"
#include "gpuqd/config_remote.h"
#include "gpuqd/rpc/method/methods.h"
#include "gpuqd/rpc/rpc.h"

struct identities {
	struct auth *auth;
	struct methods *methods;
	struct rpc_server *server;
};

static bool is_in_use(void *arg, const char *credential)
{
	const struct identities *i = arg;

	return i->server && rpc_server_uses(i->server, credential);
}

static void drop(void *arg, const char *credential, const struct gpuq_err *why)
{
	struct identities *i = arg;

	if (i->server)
		rpc_server_drop(i->server, credential, why);
}

static struct auth_opts opts_of(struct identities *i, const struct config_auth *c)
{
	return (struct auth_opts){ .rules = c->oidc.items,
				   .n_rules = c->oidc.n,
				   .kubernetes = c->kubernetes,
				   .arg = i,
				   .in_use = is_in_use,
				   .drop = drop,
				   .proxy = c->proxy,
				   .agent = "gpuqd/" PACKAGE_VERSION };
}

int identities_check(const struct config_auth *c, struct gpuq_err *err)
{
	const struct auth_rule *rules = c->oidc.items;
	struct gpuq_err why = GPUQ_ERR_INIT;

	for (size_t k = 0; k < c->oidc.n; k++)
		if (device_check_secret(&rules[k], &why) < 0)
			return gpuq_fail(err, GPUQ_EINVAL, "auth.oidc %s: %.400s", rules[k].name,
					 why.text);
	return 0;
}

static void tell_methods(struct identities *i, const struct config_auth *c)
{
	methods_set_token_age(i->methods, c->token_max_age_us);
	methods_set_auth(i->methods, c->oidc.n || c->kubernetes ? i->auth : NULL);
}

int identities_new(struct loop *l, const struct config_auth *c, struct methods *m,
		   struct identities **out, struct gpuq_err *err)
{
	struct identities *i = calloc(1, sizeof(*i));
	struct auth_opts o;
	int rc = i ? identities_check(c, err) : gpuq_no_memory(err);

	if (rc == 0) {
		i->methods = m;
		o = opts_of(i, c);
		rc = auth_new(l, &o, &i->auth, err);
	}
	if (rc < 0) {
		free(i);
		return rc;
	}
	tell_methods(i, c);
	*out = i;
	return 0;
}

void identities_free(struct identities *i)
{
	if (i)
		auth_free(i->auth);
	free(i);
}

void identities_set_server(struct identities *i, struct rpc_server *s)
{
	i->server = s;
}

void identities_set_cluster(struct identities *i, struct cluster *c)
{
	if (i)
		auth_set_cluster(i->auth, c);
}

int identities_reload(struct identities *i, const struct config_auth *c, struct gpuq_err *err)
{
	const struct auth_opts o = opts_of(i, c);
	int rc = auth_set_opts(i->auth, &o, err);

	tell_methods(i, c);
	if (i->server)
		rpc_server_set_certificate_user(i->server, c->certificate_user == 1);
	return rc;
}
