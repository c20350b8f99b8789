#include "gpuqd/cluster/kube/pods/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct walk {
	char path[96];
	bool restricted;
	struct gpuq_err *err;
};

/* Step into a member for the time of one check. */
static size_t enter(struct walk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static size_t enter(struct walk *w, const char *fmt, ...)
{
	size_t mark = strlen(w->path);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->path + mark, sizeof(w->path) - mark, fmt, ap);
	va_end(ap);
	return mark;
}

static void leave(struct walk *w, size_t mark)
{
	w->path[mark] = '\0';
}

static int refuse(struct walk *w, const char *what)
{
	return gpuq_fail_field(w->err, GPUQ_EPERM, w->path, "%s: %s", w->path, what);
}

static const char *str(const struct gpuq_val *v)
{
	return v && v->type == GPUQ_STR ? v->s : "";
}

static bool listed(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(s, *list) == 0)
			return true;
	return false;
}

typedef int (*item_fn)(struct walk *w, const struct gpuq_val *item);

static int each(struct walk *w, const struct gpuq_val *map, const char *key, item_fn fn)
{
	const struct gpuq_val *list = gpuq_get(map, key);
	int rc = 0;

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n && rc == 0; i++) {
		size_t mark = enter(w, ".%s[%u]", key, i);

		rc = fn(w, list->items[i]);
		leave(w, mark);
	}
	return rc;
}

static int inside(struct walk *w, const struct gpuq_val *map, const char *key, item_fn fn)
{
	const struct gpuq_val *v = gpuq_get(map, key);
	size_t mark;
	int rc;

	if (!v || v->type == GPUQ_NULL)
		return 0;
	mark = enter(w, ".%s", key);
	rc = fn(w, v);
	leave(w, mark);
	return rc;
}

/* ---- one value ---- */

static int not_true(struct walk *w, const struct gpuq_val *v)
{
	if (v->type == GPUQ_BOOL && !v->b)
		return 0;
	return refuse(w, "not allowed in this queue: leave it out");
}

static int never(struct walk *w, const struct gpuq_val *v)
{
	(void)v;
	return refuse(w, "not allowed in this queue: leave it out");
}

static int not_host(struct walk *w, const struct gpuq_val *v)
{
	if (!*str(v))
		return 0;
	return refuse(w, "a probe may only reach its own pod: leave the host out");
}

static int no_host_port(struct walk *w, const struct gpuq_val *v)
{
	if (v->type == GPUQ_INT && v->i == 0)
		return 0;
	return refuse(w, "not allowed in this queue: use the pod's own address");
}

static int default_proc_mount(struct walk *w, const struct gpuq_val *v)
{
	if (strcmp(str(v), "Default") == 0)
		return 0;
	return refuse(w, "expected Default");
}

static int confined(struct walk *w, const struct gpuq_val *v)
{
	static const char *const ok[] = { "", "RuntimeDefault", "Localhost", NULL };

	if (listed(str(v), ok))
		return 0;
	return refuse(w, "expected RuntimeDefault or Localhost");
}

static int profile(struct walk *w, const struct gpuq_val *v)
{
	return inside(w, v, "type", confined);
}

static int selinux_type(struct walk *w, const struct gpuq_val *v)
{
	static const char *const ok[] = {
		"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", NULL
	};

	if (listed(str(v), ok))
		return 0;
	return refuse(w, "expected container_t");
}

static int empty(struct walk *w, const struct gpuq_val *v)
{
	return *str(v) ? refuse(w, "not allowed in this queue: leave it out") : 0;
}

static int selinux(struct walk *w, const struct gpuq_val *v)
{
	int rc = inside(w, v, "type", selinux_type);

	if (rc == 0)
		rc = inside(w, v, "user", empty);
	return rc == 0 ? inside(w, v, "role", empty) : rc;
}

static int windows(struct walk *w, const struct gpuq_val *v)
{
	return inside(w, v, "hostProcess", not_true);
}

static int capability(struct walk *w, const struct gpuq_val *v)
{
	static const char *const ok[] = {
		"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
		"KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
		"SETPCAP",     "SETUID", "SYS_CHROOT",       NULL
	};

	if (w->restricted ? strcmp(str(v), "NET_BIND_SERVICE") == 0 : listed(str(v), ok))
		return 0;
	return refuse(w, "this capability is not allowed in this queue");
}

static int capabilities(struct walk *w, const struct gpuq_val *v)
{
	return each(w, v, "add", capability);
}

static int safe_sysctl(struct walk *w, const struct gpuq_val *v)
{
	static const char *const ok[] = { "kernel.shm_rmid_forced",
					  "net.ipv4.ip_local_port_range",
					  "net.ipv4.ip_unprivileged_port_start",
					  "net.ipv4.tcp_syncookies",
					  "net.ipv4.ping_group_range",
					  "net.ipv4.ip_local_reserved_ports",
					  "net.ipv4.tcp_keepalive_time",
					  "net.ipv4.tcp_fin_timeout",
					  "net.ipv4.tcp_keepalive_intvl",
					  "net.ipv4.tcp_keepalive_probes",
					  "net.ipv4.tcp_rmem",
					  "net.ipv4.tcp_wmem",
					  NULL };

	if (listed(str(gpuq_get(v, "name")), ok))
		return 0;
	return refuse(w, "only sysctls that touch nothing but the pod are allowed");
}

/* ---- parts of a template ---- */

struct rule {
	const char *key;
	item_fn fn;
};

static int apply(struct walk *w, const struct gpuq_val *map, const struct rule *rules, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = inside(w, map, rules[i].key, rules[i].fn);
	return rc;
}

#define APPLY(w, map, rules) apply(w, map, rules, sizeof(rules) / sizeof((rules)[0]))

/* ---- what `restricted` adds ---- */

static int not_root(struct walk *w, const struct gpuq_val *v)
{
	if (!w->restricted || (v->type == GPUQ_BOOL && v->b))
		return 0;
	return refuse(w, "expected true: this queue's pods do not run as root");
}

static int not_user_0(struct walk *w, const struct gpuq_val *v)
{
	if (!w->restricted || v->type != GPUQ_INT || v->i != 0)
		return 0;
	return refuse(w, "expected another user than 0: this queue's pods do not run as root");
}

static int no_escalation(struct walk *w, const struct gpuq_val *v)
{
	return w->restricted ? not_true(w, v) : 0;
}

/* Every volume has a name and one more key, its type. */
static int plain_volume(struct walk *w, const struct gpuq_val *v)
{
	static const char *const ok[] = { "name",        "configMap", "csi",
					  "downwardAPI", "emptyDir",  "ephemeral",
					  "image",       "projected", "persistentVolumeClaim",
					  "secret",      NULL };

	for (uint32_t i = 0; w->restricted && v->type == GPUQ_MAP && i < v->n; i++) {
		if (listed(v->pairs[i].key, ok) || v->pairs[i].val->type == GPUQ_NULL)
			continue;
		enter(w, ".%s", v->pairs[i].key);
		return refuse(w, "volumes of this type are not allowed in this queue: use a claim");
	}
	return 0;
}

static int container_security(struct walk *w, const struct gpuq_val *v)
{
	static const struct rule rules[] = {
		{ "privileged", not_true },          { "capabilities", capabilities },
		{ "procMount", default_proc_mount }, { "seccompProfile", profile },
		{ "appArmorProfile", profile },      { "seLinuxOptions", selinux },
		{ "windowsOptions", windows },       { "runAsNonRoot", not_root },
		{ "runAsUser", not_user_0 },         { "allowPrivilegeEscalation", no_escalation },
	};

	return APPLY(w, v, rules);
}

static int pod_security(struct walk *w, const struct gpuq_val *v)
{
	static const struct rule rules[] = {
		{ "seccompProfile", profile }, { "appArmorProfile", profile },
		{ "seLinuxOptions", selinux }, { "windowsOptions", windows },
		{ "runAsNonRoot", not_root },  { "runAsUser", not_user_0 },
	};
	int rc = APPLY(w, v, rules);

	return rc == 0 ? each(w, v, "sysctls", safe_sysctl) : rc;
}

static int hosted(struct walk *w, const struct gpuq_val *v)
{
	return inside(w, v, "host", not_host);
}

/* A probe, or one handler of a lifecycle. */
static int handler(struct walk *w, const struct gpuq_val *v)
{
	static const struct rule rules[] = { { "httpGet", hosted }, { "tcpSocket", hosted } };

	return APPLY(w, v, rules);
}

static int lifecycle(struct walk *w, const struct gpuq_val *v)
{
	static const struct rule rules[] = { { "postStart", handler }, { "preStop", handler } };

	return APPLY(w, v, rules);
}

static int port(struct walk *w, const struct gpuq_val *v)
{
	return inside(w, v, "hostPort", no_host_port);
}

static int container(struct walk *w, const struct gpuq_val *v)
{
	static const struct rule rules[] = {
		{ "securityContext", container_security },
		{ "livenessProbe", handler },
		{ "readinessProbe", handler },
		{ "startupProbe", handler },
		{ "lifecycle", lifecycle },
	};
	int rc = APPLY(w, v, rules);

	return rc == 0 ? each(w, v, "ports", port) : rc;
}

static int volume(struct walk *w, const struct gpuq_val *v)
{
	int rc = inside(w, v, "hostPath", never);

	return rc == 0 ? plain_volume(w, v) : rc;
}

static int pod_spec(struct walk *w, const struct gpuq_val *v)
{
	static const struct rule rules[] = {
		{ "hostNetwork", not_true },
		{ "hostPID", not_true },
		{ "hostIPC", not_true },
		{ "securityContext", pod_security },
	};
	static const struct rule lists[] = {
		{ "volumes", volume },
		{ "initContainers", container },
		{ "containers", container },
		{ "ephemeralContainers", never },
	};
	int rc = APPLY(w, v, rules);

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && rc == 0; i++)
		rc = each(w, v, lists[i].key, lists[i].fn);
	return rc;
}

/* The older way to say appArmorProfile. */
static int metadata(struct walk *w, const struct gpuq_val *v)
{
	static const char prefix[] = "container.apparmor.security.beta.kubernetes.io/";
	const struct gpuq_val *notes = gpuq_get(v, "annotations");

	for (uint32_t i = 0; notes && notes->type == GPUQ_MAP && i < notes->n; i++) {
		const char *value = str(notes->pairs[i].val);

		if (strncmp(notes->pairs[i].key, prefix, sizeof(prefix) - 1) != 0 || !*value ||
		    strcmp(value, "runtime/default") == 0 || strncmp(value, "localhost/", 10) == 0)
			continue;
		enter(w, ".annotations");
		return refuse(w, "AppArmor: expected runtime/default or localhost/PROFILE");
	}
	return 0;
}

/* Refuse what gpuq cannot run under any pod policy. */
static int runnable(struct walk *w, const struct gpuq_val *spec)
{
	static const struct {
		const char *key, *why;
	} rows[] = {
		{ "schedulingGates", "gpuq decides when a pod starts: use --hold or depends" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct gpuq_val *v = gpuq_get(spec, rows[i].key);

		if (!v || v->type != GPUQ_LIST || v->n == 0)
			continue;
		enter(w, ".%s", rows[i].key);
		return gpuq_fail_field(w->err, GPUQ_EINVAL, w->path, "%s: %s", w->path,
				       rows[i].why);
	}
	return 0;
}

static int check_group(struct walk *w, const struct gpuq_group *g, enum kube_policy level)
{
	const struct gpuq_val *t = g->template_, *spec = gpuq_get(t, "spec");
	size_t mark = enter(w, ".template.spec");
	int rc = runnable(w, spec);

	if (rc != 0 || level == KUBE_POLICY_PRIVILEGED)
		return rc;
	rc = spec ? pod_spec(w, spec) : 0;
	leave(w, mark);
	if (rc == 0 && t) {
		mark = enter(w, ".template.metadata");
		rc = metadata(w, gpuq_get(t, "metadata"));
		leave(w, mark);
	}
	for (size_t i = 0; i < g->n_volumes && rc == 0 && !t; i++) {
		const bool nfs = g->volumes[i].nfs && w->restricted;

		if (!g->volumes[i].host_path && !nfs)
			continue;
		enter(w, ".volumes[%zu].%s", i, nfs ? "nfs" : "host_path");
		rc = refuse(w, "not allowed in this queue: use a claim");
	}
	return rc;
}

int podspec_check(const struct gpuq_spec *spec, enum kube_policy level, struct gpuq_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < spec->n_groups && rc == 0; i++) {
		struct walk w = { .err = err, .restricted = level == KUBE_POLICY_RESTRICTED };

		enter(&w, "groups[%zu]", i);
		rc = check_group(&w, &spec->groups[i], level);
	}
	return rc;
}

/* ---- pods that are not made by gpuqd ---- */

static bool is_bool(const struct gpuq_val *v, bool b)
{
	return v && v->type == GPUQ_BOOL && v->b == b;
}

static bool drops_all(const struct gpuq_val *security)
{
	const struct gpuq_val *list = gpuq_path(security, "capabilities", "drop", NULL);

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (strcmp(str(list->items[i]), "ALL") == 0)
			return true;
	return false;
}

/* Return what a container lacks of what `restricted` demands; NULL: nothing. */
static const char *lacks(const struct gpuq_val *c, const struct gpuq_val *of_pod)
{
	const struct gpuq_val *own = gpuq_get(c, "securityContext");
	const struct gpuq_val *root = gpuq_get(own, "runAsNonRoot");

	if (!is_bool(gpuq_get(own, "allowPrivilegeEscalation"), false))
		return "securityContext.allowPrivilegeEscalation: expected false";
	if (!drops_all(own))
		return "securityContext.capabilities.drop: expected ALL in it";
	if (!is_bool(root ? root : gpuq_get(of_pod, "runAsNonRoot"), true))
		return "securityContext.runAsNonRoot: expected true";
	if (!*str(gpuq_path(own, "seccompProfile", "type", NULL)) &&
	    !*str(gpuq_path(of_pod, "seccompProfile", "type", NULL)))
		return "securityContext.seccompProfile.type: expected RuntimeDefault or Localhost";
	return NULL;
}

int podspec_check_made(const struct gpuq_spec *spec, enum kube_policy level, struct gpuq_err *err)
{
	static const char *const lists[] = { "initContainers", "containers" };

	for (size_t i = 0; level == KUBE_POLICY_RESTRICTED && i < 2 * spec->n_groups; i++) {
		const struct gpuq_val *pod = gpuq_get(spec->groups[i / 2].template_, "spec");
		const struct gpuq_val *list = gpuq_get(pod, lists[i % 2]);

		for (uint32_t k = 0; list && list->type == GPUQ_LIST && k < list->n; k++) {
			const char *what = lacks(list->items[k], gpuq_get(pod, "securityContext"));

			if (what)
				return gpuq_fail(err, GPUQ_EPERM,
						 "spec.%s[%u].%s: this queue is restricted",
						 lists[i % 2], k, what);
		}
	}
	return 0;
}
