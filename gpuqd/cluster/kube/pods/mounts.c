#include "gpuqd/cluster/kube/pods/mounts.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEEP 24 /* a template is no deeper: podspec_json() made it from what was read */

/* ---- the names ---- */

struct walk {
	mount_fn fn;
	void *arg;
	char path[192];
};

static size_t enter(struct walk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static size_t enter(struct walk *w, const char *fmt, ...)
{
	const size_t mark = strlen(w->path);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->path + mark, sizeof(w->path) - mark, fmt, ap);
	va_end(ap);
	return mark;
}

static const char *str(const struct gpuq_val *v)
{
	return v && v->type == GPUQ_STR ? v->s : "";
}

static int name(struct walk *w, enum mount_kind kind, const struct gpuq_val *v)
{
	return *str(v) ? w->fn(w->arg, kind, v->s, w->path) : 0;
}

/* A member of any map below the spec of a pod. The rows are by the key: nothing else in a pod has
 * these keys, and what a driver of volumes is told in a map of its own is taken the same way. */
static int member(struct walk *w, const char *key, const struct gpuq_val *v)
{
	static const struct {
		const char *key, *name; /* name NULL = the value itself */
		enum mount_kind kind;
	} rows[] = {
		{ "secretName", NULL, MOUNT_SECRET },
		{ "claimName", NULL, MOUNT_CLAIM },
		{ "secret", "name", MOUNT_SECRET },
		{ "secretRef", "name", MOUNT_SECRET },
		{ "secretKeyRef", "name", MOUNT_SECRET },
		{ "nodePublishSecretRef", "name", MOUNT_SECRET },
		{ "configMap", "name", MOUNT_CONFIG_MAP },
		{ "configMapRef", "name", MOUNT_CONFIG_MAP },
		{ "configMapKeyRef", "name", MOUNT_CONFIG_MAP },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && rc == 0; i++)
		if (strcmp(rows[i].key, key) == 0)
			rc = name(w, rows[i].kind, rows[i].name ? gpuq_get(v, rows[i].name) : v);
	if (rc == 0 && strncmp(key, "dataSource", 10) == 0 &&
	    strcmp(str(gpuq_get(v, "kind")), "PersistentVolumeClaim") == 0)
		rc = name(w, MOUNT_CLAIM, gpuq_get(v, "name"));
	for (uint32_t i = 0;
	     rc == 0 && strcmp(key, "imagePullSecrets") == 0 && v->type == GPUQ_LIST && i < v->n;
	     i++)
		rc = name(w, MOUNT_SECRET, gpuq_get(v->items[i], "name"));
	return rc;
}

static int below(struct walk *w, const struct gpuq_val *v, int depth)
{
	int rc = 0;

	for (uint32_t i = 0; v && depth < DEEP && rc == 0 && i < v->n; i++) {
		size_t mark;

		if (v->type == GPUQ_MAP) {
			mark = enter(w, ".%s", v->pairs[i].key);
			rc = member(w, v->pairs[i].key, v->pairs[i].val);
			if (rc == 0)
				rc = below(w, v->pairs[i].val, depth + 1);
		} else if (v->type == GPUQ_LIST) {
			mark = enter(w, "[%u]", i);
			rc = below(w, v->items[i], depth + 1);
		} else {
			break;
		}
		w->path[mark] = '\0';
	}
	return rc;
}

int mounts_each(const struct gpuq_group *g, mount_fn fn, void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	int rc = 0;

	for (size_t i = 0; !g->template_ && i < g->n_volumes && rc == 0; i++) {
		const struct gpuq_volume *v = &g->volumes[i];

		if (v->given) /* an operator chose it */
			continue;
		snprintf(w.path, sizeof(w.path), "volumes[%zu]", i);
		if (v->secret)
			rc = fn(arg, MOUNT_SECRET, v->secret, w.path);
		else if (v->config_map)
			rc = fn(arg, MOUNT_CONFIG_MAP, v->config_map, w.path);
		else if (v->claim)
			rc = fn(arg, MOUNT_CLAIM, v->claim, w.path);
	}
	snprintf(w.path, sizeof(w.path), "template.spec");
	return rc == 0 && g->template_ ? below(&w, gpuq_get(g->template_, "spec"), 0) : rc;
}

const struct site_mounts *mounts_rule(const struct site_walls *w, enum mount_kind kind)
{
	return kind == MOUNT_SECRET       ? &w->secrets
	       : kind == MOUNT_CONFIG_MAP ? &w->config_maps
					  : &w->volume_claims;
}

const char *mounts_key(enum mount_kind kind)
{
	static const char *const keys[N_MOUNT_KINDS] = { "secrets", "config_maps",
							 "volume_claims" };

	return keys[kind];
}

/* ---- what is refused before anything is stored ---- */

struct check {
	const struct site_walls *walls;
	size_t group, n_groups;
	struct gpuq_err *err;
};

static int refuse(const struct check *c, const char *path, const char *what)
{
	char field[256];

	snprintf(field, sizeof(field), "groups[%zu].%s", c->group, path);
	return gpuq_fail_field(c->err, GPUQ_EPERM, field, "%s: %s", field, what);
}

/* gpuq-CLUSTER-...: scripts of jobs, also of those of another gpuqd in this cluster. */
static bool is_of_gpuqd(const char *s)
{
	return strncmp(s, "gpuq-", 5) == 0 && strspn(s + 5, "0123456789abcdef") >= 8 &&
	       s[13] == '-';
}

static int check_name(void *arg, enum mount_kind kind, const char *s, const char *path)
{
	const struct check *c = arg;
	const struct site_mounts *rule = mounts_rule(c->walls, kind);
	char why[256];

	if (kind == MOUNT_CONFIG_MAP && is_of_gpuqd(s))
		return refuse(c, path, "gpuqd made it for a job, and no other may mount it");
	if (rule->kind != WALL_LIST)
		return 0;
	for (size_t i = 0; i < rule->globs.n; i++)
		if (fnmatch(rule->globs.items[i], s, 0) == 0)
			return 0;
	snprintf(why, sizeof(why), "%.64s: not among the %s of this queue, which begin with %.64s",
		 s, mounts_key(kind), rule->globs.items[0]);
	return refuse(c, path, why);
}

/* Mounts there choose devices, past the counting of them. */
static bool is_magic(const char *path)
{
	static const char *const magic[] = { "/var/run/nvidia-container-devices",
					     "/run/nvidia-container-devices" };
	char plain[160];
	size_t n = 0;

	/* As mount(2) reads it: no empty part, no "." */
	for (const char *p = path; *p && n < sizeof(plain) - 2;) {
		const size_t part = strcspn(p, "/");

		if (part && !(part == 1 && *p == '.') && n + part + 2 < sizeof(plain)) {
			plain[n++] = '/';
			memcpy(plain + n, p, part);
			n += part;
		}
		p += part + (p[part] == '/');
	}
	plain[n] = '\0';
	for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]); i++) {
		const size_t len = strlen(magic[i]);

		if (strncmp(plain, magic[i], len) == 0 && (!plain[len] || plain[len] == '/'))
			return true;
	}
	return strstr(path, "..") && strstr(path, "nvidia-container-devices");
}

static int check_paths(const struct check *c, const struct gpuq_val *spec, const char *list)
{
	const struct gpuq_val *containers = gpuq_get(spec, list), *mounts;
	char path[128];

	for (uint32_t i = 0; containers && containers->type == GPUQ_LIST && i < containers->n;
	     i++) {
		mounts = gpuq_get(containers->items[i], "volumeMounts");
		for (uint32_t k = 0; mounts && mounts->type == GPUQ_LIST && k < mounts->n; k++) {
			if (!is_magic(str(gpuq_get(mounts->items[k], "mountPath"))))
				continue;
			snprintf(path, sizeof(path),
				 "template.spec.%s[%u].volumeMounts[%u].mountPath", list, i, k);
			return refuse(c, path, "mounts there choose devices: request gpus instead");
		}
	}
	return 0;
}

/* Annotations by which the runtime injects devices. */
static int check_notes(const struct check *c, const struct gpuq_val *notes)
{
	for (uint32_t i = 0; notes && notes->type == GPUQ_MAP && i < notes->n; i++)
		if (strncmp(notes->pairs[i].key, "cdi.k8s.io/", 11) == 0)
			return refuse(c, "template.metadata.annotations",
				      "cdi.k8s.io chooses devices: request gpus instead");
	return 0;
}

static int check_tokens(const struct check *c, const struct gpuq_val *spec)
{
	const struct gpuq_val *volumes = gpuq_get(spec, "volumes"), *sources;
	char path[128];

	for (uint32_t i = 0; volumes && volumes->type == GPUQ_LIST && i < volumes->n; i++) {
		sources = gpuq_get(gpuq_get(volumes->items[i], "projected"), "sources");
		for (uint32_t k = 0; sources && sources->type == GPUQ_LIST && k < sources->n; k++) {
			if (!gpuq_get(sources->items[k], "serviceAccountToken") &&
			    !gpuq_get(sources->items[k], "podCertificate"))
				continue;
			snprintf(path, sizeof(path),
				 "template.spec.volumes[%u].projected.sources[%u]", i, k);
			return refuse(c, path,
				      "tokens of the service account are not allowed in this queue "
				      "(service_account_token)");
		}
	}
	return 0;
}

static int check_group(const struct check *c, const struct gpuq_group *g)
{
	const struct gpuq_val *spec = gpuq_get(g->template_, "spec");
	const bool privileged = strcmp(c->walls->pod_policy, "privileged") == 0;
	char path[64];
	int rc = mounts_each(g, check_name, (void *)c);

	if (rc == 0 && !c->walls->tokens && spec)
		rc = check_tokens(c, spec);
	if (rc != 0 || privileged)
		return rc;
	for (size_t i = 0; i < g->n_volumes && !g->template_; i++) {
		if (!is_magic(g->volumes[i].path ? g->volumes[i].path : ""))
			continue;
		snprintf(path, sizeof(path), "volumes[%zu].path", i);
		return refuse(c, path, "mounts there choose devices: request gpus instead");
	}
	if (spec)
		rc = check_paths(c, spec, "initContainers");
	if (rc == 0 && spec)
		rc = check_paths(c, spec, "containers");
	return rc == 0 ? check_notes(c, gpuq_get(gpuq_get(g->template_, "metadata"), "annotations"))
		       : rc;
}

int mounts_check(const struct gpuq_spec *spec, const struct site_walls *walls, struct gpuq_err *err)
{
	struct check c = { .walls = walls, .n_groups = spec->n_groups, .err = err };
	const bool privileged = strcmp(walls->pod_policy, "privileged") == 0;
	int rc = 0;

	for (; c.group < spec->n_groups && rc == 0; c.group++)
		rc = check_group(&c, &spec->groups[c.group]);
	for (size_t i = 0; i < spec->annotations.n && rc == 0 && !privileged; i++)
		if (strncmp(spec->annotations.keys[i], "cdi.k8s.io/", 11) == 0)
			rc = gpuq_fail_field(
				err, GPUQ_EPERM, "annotations",
				"annotations: cdi.k8s.io chooses devices: request gpus "
				"instead");
	return rc;
}
