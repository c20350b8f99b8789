#include "gpuq/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuq/file.h"
#include "libgpuq/base/write.h"
#include "libgpuq/limits.h"
#include "libgpuq/val.h"
#include "libgpuq/yaml.h"

#define FILE_BYTES_MAX (256u << 10)
#define MOUNTED "/var/run/secrets/gpuq/token"
#define BLANKS " \t\r\n"
#define MODULE_FILE "libgpuq-tls.so"
#define MODULE "libgpuq/.libs/" MODULE_FILE

struct servers_given servers_given;

static const char *const keys[] = { "address", "pin", "ca", "cert", "key", "token" };
enum { N_KEYS = sizeof(keys) / sizeof(keys[0]) };

static const char **member(struct servers_entry *e, size_t k)
{
	const char **all[N_KEYS] = { &e->address, &e->pin, &e->ca, &e->cert, &e->key, &e->token };

	return all[k];
}

/* The directory of the file; NULL without a home. */
static const char *folder(struct gpuq_arena *a)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (base && *base == '/')
		return gpuq_arena_printf(a, "%s/gpuq", base);
	return home && *home == '/' ? gpuq_arena_printf(a, "%s/.config/gpuq", home) : NULL;
}

static int wrong(const char *path, const struct gpuq_val *at, struct gpuq_err *err)
{
	return gpuq_fail(
		err, GPUQ_EINVAL,
		"%s:%u:%u: expected {last: ADDRESS, servers: [{address, pin, ca, cert, key, "
		"token}]}, as gpuq login writes it",
		path, at->at.line, at->at.col);
}

static int check(const char *path, const struct gpuq_val *v, struct gpuq_err *err)
{
	const struct gpuq_val *list = gpuq_get(v, "servers"), *last = gpuq_get(v, "last");

	if (v->type != GPUQ_MAP || (list && list->type != GPUQ_LIST) ||
	    (last && last->type != GPUQ_STR))
		return wrong(path, v, err);
	for (size_t i = 0; list && i < list->n; i++) {
		const struct gpuq_val *e = list->items[i];

		if (e->type != GPUQ_MAP || !gpuq_get_str(e, "address", NULL))
			return wrong(path, e, err);
		for (size_t k = 0; k < N_KEYS; k++) {
			const struct gpuq_val *m = gpuq_get(e, keys[k]);

			if (m && m->type != GPUQ_STR)
				return wrong(path, m, err);
		}
	}
	return 0;
}

/* The file as a tree; an empty map where there is none. */
static int load(struct gpuq_arena *a, struct gpuq_val **out, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(FILE_BYTES_MAX);
	const char *dir = folder(a),
		   *path = dir ? gpuq_arena_printf(a, "%s/servers.yaml", dir) : NULL;
	struct gpuq_val **docs = NULL;
	size_t n = 0;
	struct stat st;
	int rc = 0;

	*out = gpuq_map(a);
	if (!path || stat(path, &st) != 0)
		return 0;
	if (st.st_mode & 077)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%s holds tokens and is readable by others: chmod 600 %s", path,
				 path);
	rc = file_read(path, &text, err);
	if (rc == 0)
		rc = gpuq_yaml_parse(a, path, text.data ? text.data : "", text.len, &docs, &n, err);
	if (rc == 0 && n > 0) {
		rc = check(path, docs[0], err);
		*out = docs[0];
	}
	gpuq_buf_done(&text);
	return rc;
}

/* Replace the file; the new one is complete, and its owner's alone, before it has the name. */
static int save(struct gpuq_arena *a, const struct gpuq_val *v, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const char *dir = folder(a), *path, *next;
	int fd = -1, rc = 0;

	if (!dir)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "$HOME is not set: there is no place for servers.yaml");
	path = gpuq_arena_printf(a, "%s/servers.yaml", dir);
	next = gpuq_arena_printf(a, "%s/servers.yaml.new", dir);
	if (!path || !next)
		return gpuq_no_memory(err);
	for (char *p = strchr((char *)dir + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(dir, 0700);
		*p = '/';
	}
	mkdir(dir, 0700);
	gpuq_yaml_write(&text, v);
	unlink(next);
	fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || text.failed || gpuq_write_all(fd, text.data, text.len) != 0 || fsync(fd) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", next, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (rc == 0 && rename(next, path) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	gpuq_buf_done(&text);
	return rc;
}

/* Without what gpuq login kept of it. */
static const char *bare(struct gpuq_arena *a, const char *address)
{
	return gpuq_arena_strndup(a, address, strcspn(address, "?"));
}

int servers_find(struct gpuq_arena *a, const char *address, struct servers_entry *out,
		 struct gpuq_err *err)
{
	const char *name = bare(a, address);
	const struct gpuq_val *list;
	struct gpuq_val *v;
	int rc = load(a, &v, err);

	*out = (struct servers_entry){ .address = name };
	list = rc == 0 ? gpuq_get(v, "servers") : NULL;
	for (size_t i = 0; list && name && i < list->n; i++)
		if (strcmp(gpuq_get_str(list->items[i], "address", ""), name) == 0)
			for (size_t k = 0; k < N_KEYS; k++)
				*member(out, k) = gpuq_get_str(list->items[i], keys[k], NULL);
	return rc;
}

/* All but this one. */
static struct gpuq_val *others(struct gpuq_arena *a, const struct gpuq_val *v, const char *name,
			       bool *found)
{
	const struct gpuq_val *list = gpuq_get(v, "servers");
	struct gpuq_val *out = gpuq_list(a);

	for (size_t i = 0; list && i < list->n; i++)
		if (strcmp(gpuq_get_str(list->items[i], "address", ""), name) != 0)
			gpuq_add(a, out, list->items[i]);
		else
			*found = true;
	return out;
}

int servers_put(struct gpuq_arena *a, const struct servers_entry *e, struct gpuq_err *err)
{
	struct servers_entry copy = *e;
	struct gpuq_val *v, *list, *one = gpuq_map(a), *next = gpuq_map(a);
	bool found = false;
	int rc;

	copy.address = bare(a, e->address);
	rc = copy.address ? load(a, &v, err) : gpuq_no_memory(err);
	if (rc < 0)
		return rc;
	list = others(a, v, copy.address, &found);
	for (size_t k = 0; k < N_KEYS; k++)
		if (*member(&copy, k))
			gpuq_put(a, one, keys[k], gpuq_str(a, *member(&copy, k)));
	gpuq_add(a, list, one);
	gpuq_put(a, next, "last", gpuq_str(a, copy.address));
	gpuq_put(a, next, "servers", list);
	return gpuq_val_ok(next) ? save(a, next, err) : gpuq_no_memory(err);
}

int servers_forget(struct gpuq_arena *a, const char *address, struct gpuq_err *err)
{
	const char *name = bare(a, address), *last;
	struct gpuq_val *v, *list, *next = gpuq_map(a);
	bool found = false;
	int rc = name ? load(a, &v, err) : gpuq_no_memory(err);

	if (rc < 0)
		return rc;
	list = others(a, v, name, &found);
	if (!found)
		return 0;
	last = gpuq_get_str(v, "last", NULL);
	if (last && strcmp(last, name) != 0)
		gpuq_put(a, next, "last", gpuq_str(a, last));
	gpuq_put(a, next, "servers", list);
	rc = gpuq_val_ok(next) ? save(a, next, err) : gpuq_no_memory(err);
	return rc < 0 ? rc : 1;
}

int servers_last(struct gpuq_arena *a, const char **address, struct gpuq_err *err)
{
	struct gpuq_val *v;
	int rc = load(a, &v, err);

	if (rc < 0)
		return rc;
	*address = gpuq_get_str(v, "last", NULL);
	return *address != NULL;
}

/* ---- tokens ---- */

static int read_token(struct gpuq_arena *a, const char *path, const char **token,
		      struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(GPUQ_CREDENTIAL_BYTES_MAX + 64);
	int rc = file_read(path, &text, err);
	const char *s;
	size_t n;

	if (rc == 0) {
		s = gpuq_buf_str(&text);
		s += strspn(s, BLANKS);
		n = strcspn(s, BLANKS);
		if (n == 0 || s[n + strspn(s + n, BLANKS)])
			rc = gpuq_fail(err, GPUQ_EINVAL, "%s: expected one token and nothing else",
				       path);
		else if (!(*token = gpuq_arena_strndup(a, s, n)))
			rc = gpuq_no_memory(err);
		explicit_bzero(text.data, text.len);
	}
	gpuq_buf_done(&text);
	return rc < 0 ? rc : 1;
}

int servers_token(struct gpuq_arena *a, const char *file, const char **token, struct gpuq_err *err)
{
	const char *env_file = getenv("GPUQ_TOKEN_FILE"), *env = getenv("GPUQ_TOKEN");

	if (file)
		return read_token(a, file, token, err);
	if (env_file && *env_file)
		return read_token(a, env_file, token, err);
	if (env && *env) {
		*token = gpuq_arena_strdup(a, env);
		return *token ? 1 : gpuq_no_memory(err);
	}
	return access(MOUNTED, R_OK) == 0 ? read_token(a, MOUNTED, token, err) : 0;
}

/* ---- a connection ---- */

const char *servers_module(struct gpuq_arena *a)
{
	char path[FILE_PATH_BYTES];

	/* NULL: where it was installed, if it is there. */
	return file_beside("../" MODULE, path) || file_beside(FILE_MOVED_LIB MODULE_FILE, path)
		       ? gpuq_arena_strdup(a, path)
		       : NULL;
}

int servers_opts(struct gpuq_arena *a, struct gpuq_connect_opts *o, struct gpuq_err *err)
{
	struct servers_entry e;
	int rc;

	if (strncmp(o->addr, "tls://", 6) != 0)
		return 0;
	rc = servers_find(a, o->addr, &e, err);
	if (rc == 0)
		rc = servers_token(a, servers_given.token_file, &o->token, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		o->token = e.token;
	o->pin = e.pin;
	o->ca = servers_given.ca ? servers_given.ca : e.ca;
	o->cert = e.cert;
	o->key = e.key;
	o->module = servers_module(a);
	return 0;
}
