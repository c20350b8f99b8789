#include "config.h"

#include "gpuq/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/file.h"
#include "gpuq/servers.h"
#include "libgpuq/val.h"
#include "libgpuq/yaml.h"

#define SYSTEM_CONFIG "/etc/gpuq/gpuq.yaml"
#define SYSTEM_SOCKET "unix:/run/gpuq/gpuqd.sock"
#define CONFIG_BYTES_MAX (64u << 10)
#define BUSY_US INT64_C(10000000)

static int add(struct gpuq_arena *a, struct server_places *out, const char *source,
	       const char *list, struct gpuq_err *err)
{
	char *rest = gpuq_arena_strdup(a, list), *addr;

	out->source = source;
	while (rest && (addr = strsep(&rest, ",")) != NULL) {
		if (!*addr)
			return gpuq_fail(
				err, GPUQ_EINVAL,
				"%s: expected an address such as unix:/run/gpuq/gpuqd.sock",
				source);
		if (out->n == SERVER_PLACES_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "%s: expected at most %d addresses",
					 source, SERVER_PLACES_MAX);
		out->addr[out->n] = *addr == '/' ? gpuq_arena_printf(a, "unix:%s", addr) : addr;
		if (!out->addr[out->n])
			return gpuq_no_memory(err);
		out->n++;
	}
	return 0;
}

/* The address in a configuration file. Returns 1 with *addr, 0 when the file is not
 * there or names no server, or an error code. */
static int from_file(struct gpuq_arena *a, const char *path, const char **addr,
		     struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(CONFIG_BYTES_MAX);
	struct gpuq_val **docs = NULL;
	const struct gpuq_val *map;
	size_t n_docs = 0;
	int rc;

	if (access(path, F_OK) != 0)
		return 0;
	rc = file_read(path, &text, err);
	if (rc < 0)
		goto out;
	rc = gpuq_yaml_parse(a, path, text.data ? text.data : "", text.len, &docs, &n_docs, err);
	if (rc < 0 || n_docs == 0)
		goto out;
	map = docs[0];
	if (n_docs > 1 || map->type != GPUQ_MAP) {
		rc = gpuq_fail(err, GPUQ_EINVAL, "%s:%u:%u: expected one map such as {server: %s}",
			       path, map->at.line, map->at.col, SYSTEM_SOCKET);
		goto out;
	}
	for (size_t i = 0; i < map->n; i++) {
		const struct gpuq_pair *p = &map->pairs[i];

		if (strcmp(p->key, "server") != 0) {
			rc = gpuq_fail(err, GPUQ_EINVAL, "%s:%u:%u: %s: no such key; known: server",
				       path, p->at.line, p->at.col, p->key);
			goto out;
		}
		if (p->val->type != GPUQ_STR || p->val->n == 0) {
			rc = gpuq_fail(err, GPUQ_EINVAL,
				       "%s:%u:%u: server: expected an address such as %s", path,
				       p->val->at.line, p->val->at.col, SYSTEM_SOCKET);
			goto out;
		}
		*addr = p->val->s;
		rc = 1;
	}
out:
	gpuq_buf_done(&text);
	return rc;
}

/* "$VAR/rest" or, without VAR, "$HOME/dflt/rest"; NULL without a home. */
static const char *home_path(struct gpuq_arena *a, const char *var, const char *dflt,
			     const char *rest)
{
	const char *base = var ? getenv(var) : NULL, *home = getenv("HOME");

	if (base && *base == '/')
		return gpuq_arena_printf(a, "%s/%s", base, rest);
	if (!home || *home != '/')
		return NULL;
	return gpuq_arena_printf(a, "%s/%s/%s", home, dflt, rest);
}

int server_find(struct gpuq_arena *a, const char *option, struct server_places *out,
		struct gpuq_err *err)
{
	const char *env = getenv("GPUQ_SERVER"), *addr = NULL, *own;
	const char *const files[] = {
		home_path(a, "XDG_CONFIG_HOME", ".config", "gpuq/config.yaml"),
		SYSTEM_CONFIG,
	};
	struct server_places found = { .n = 0 };
	int rc = 0;

	if (option) {
		rc = add(a, &found, "--server", option, err);
	} else if (env && *env) {
		rc = add(a, &found, "$GPUQ_SERVER", env, err);
	} else {
		for (size_t i = 0; i < 2 && rc == 0 && found.n == 0; i++) {
			rc = files[i] ? from_file(a, files[i], &addr, err) : 0;
			if (rc > 0)
				rc = add(a, &found, files[i], addr, err);
		}
		if (rc == 0 && found.n == 0)
			rc = servers_last(a, &addr, err);
		if (rc > 0)
			rc = add(a, &found, "gpuq login", addr, err);
		/* The daemon's own rule: root has the system's places, others ~/.local. */
		own = geteuid() == 0 ? NULL : home_path(a, NULL, ".local/state", "gpuq/gpuqd.sock");
		if (rc == 0 && found.n == 0 && own)
			rc = add(a, &found, "default", own, err);
		if (rc == 0 && (found.n == 0 || strcmp(found.source, "default") == 0))
			rc = add(a, &found, "default", SYSTEM_SOCKET, err);
	}
	if (rc == 0)
		*out = found;
	return rc;
}

int server_connect(struct gpuq_arena *a, const struct server_places *places, int stop_fd,
		   struct gpuq **out, struct gpuq_err *err)
{
	struct gpuq_err first = GPUQ_ERR_INIT, next = GPUQ_ERR_INIT;
	int rc = GPUQ_EUNREACH;

	for (size_t i = 0; i < places->n && rc == GPUQ_EUNREACH; i++) {
		struct gpuq_connect_opts o = { .addr = places->addr[i],
					       .client = PACKAGE_NAME "/" PACKAGE_VERSION,
					       .stop_fd = stop_fd,
					       .busy_us = BUSY_US };

		rc = servers_opts(a, &o, i == 0 ? &first : &next);
		if (rc == 0)
			rc = gpuq_connect_opts(&o, out, i == 0 ? &first : &next);
	}
	if (rc == 0)
		return 0;
	if (rc != GPUQ_EUNREACH) {
		*err = next.code == rc ? next : first;
		return rc;
	}
	if (strcmp(places->source, "default") != 0)
		return gpuq_fail(err, rc, "%s%s%s (the address is from %s)", first.text,
				 places->n > 1 ? "; and the last of the others: " : "",
				 places->n > 1 ? next.text : "", places->source);
	return gpuq_fail(err, rc,
			 "no gpuqd answers at %s%s%s: start one with `gpuqd`, or name another one "
			 "with --server or $GPUQ_SERVER",
			 places->addr[0], places->n > 1 ? " nor at " : "",
			 places->n > 1 ? places->addr[1] : "");
}
