#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/local_pod.h"
#include "gpuqd/cluster/local/local_order.h"
#include "gpuqd/cluster/local/local_log.h"
#include "gpuqd/cluster/local/local_launch.h"
#include "gpuqd/cluster/local/local_files.h"
#include "libgpuq/units.h"

/* ---- making and freeing ---- */

struct local_pod *local_pod_find(struct local *l, const char *name)
{
	struct local_pod *p;

	HASH_FIND_STR(l->pods, name, p);
	return p;
}

/* "0,3" -> {0, 3}; NULL and 0 for none. */
static int *parse_devices(const char *text, size_t *n)
{
	int *out = NULL;
	size_t count = *text ? 1 : 0;

	for (const char *p = text; *p; p++)
		count += *p == ',';
	*n = 0;
	if (count)
		out = calloc(count, sizeof(*out));
	for (char *end; out && *text && *n < count; text = *end ? end + 1 : end)
		out[(*n)++] = (int)strtol(text, &end, 10);
	return out;
}

static struct local_pod *pod_new(struct local *l, const struct order *o)
{
	struct local_pod *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->wd = -1;
	p->name = strdup(o->pod);
	p->token = strdup(o->token);
	p->uid = strdup(o->uid);
	p->note = strdup(o->record ? o->record : "");
	p->devices = parse_devices(o->devices, &p->n_devices);
	if (!p->name || !p->token || !p->uid || !p->note || (*o->devices && !p->devices)) {
		local_pod_free(l, p);
		return NULL;
	}
	p->gpus_milli = o->gpus_milli;
	p->cpu_milli = o->cpu_milli;
	p->memory_bytes = o->memory_bytes;
	p->has_script = o->script;
	for (size_t i = 0; i < o->env.n; i++)
		p->has_steps |=
			strncmp(o->env.items[i], STEPS_VARIABLE "=", sizeof(STEPS_VARIABLE)) == 0;
	p->job_uid = (uint32_t)o->job_uid;
	p->job_gid = (uint32_t)o->job_gid;
	return p;
}

static void pod_add(struct local *l, struct local_pod *p)
{
	HASH_ADD_KEYPTR(hh, l->pods, p->name, strlen(p->name), p);
}

static void pod_unwatch(struct local *l, struct local_pod *p)
{
	if (p->wd < 0)
		return;
	HASH_DELETE(hw, l->by_wd, p);
	inotify_rm_watch(l->inotify_fd, p->wd); /* fails when the directory is gone: fine */
	p->wd = -1;
}

static void pod_watch(struct local *l, struct local_pod *p)
{
	char path[4096];

	if (l->inotify_fd < 0 || p->wd >= 0)
		return;
	snprintf(path, sizeof(path), "%s/local/%s", l->dir, p->name);
	p->wd = inotify_add_watch(l->inotify_fd, path,
				  IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR);
	if (p->wd >= 0)
		HASH_ADD(hw, l->by_wd, wd, sizeof(p->wd), p);
}

void local_pod_free(struct local *l, struct local_pod *p)
{
	pod_unwatch(l, p);
	local_launch_forget(l, p);
	gpuq_buf_done(&p->record);
	gpuq_buf_done(&p->script);
	free(p->code);
	free(p->name);
	free(p->token);
	free(p->uid);
	free(p->note);
	free(p->devices);
	free(p);
}

/* Out of the table; reported as gone and freed by the next flush. */
static void pod_gone(struct local *l, struct local_pod *p)
{
	if (p->gone)
		return;
	pod_unwatch(l, p);
	local_launch_forget(l, p);
	HASH_DELETE(hh, l->pods, p);
	p->gone = true;
	if (p->owes_created)
		local_answer_created(l, p, ASK_UNKNOWN, "it was signalled before it was created");
	p->owes_created = false;
	local_log_poke(l, p->name);
	local_pod_report(l, p);
	l->trim_due = true;
}

/* ---- what is said of it ---- */

/* The meaning of an end for the ledger, by enum pod_how; an exit with 0 is handled apart. */
static const struct {
	enum pod_fault fault;
	const char *reason;
} ends[] = {
	[HOW_NOT] = { POD_FAULT_NONE, "" },
	[HOW_EXIT] = { POD_FAULT_NONE, "Error" },
	[HOW_SIGNAL] = { POD_FAULT_NONE, "Signal" },
	[HOW_OOM] = { POD_FAULT_OOM, "OOMKilled" },
	[HOW_DEADLINE] = { POD_FAULT_DEADLINE, "DeadlineExceeded" },
	[HOW_DELETED] = { POD_FAULT_NONE, "Deleted" },
	[HOW_INFRA] = { POD_FAULT_INFRA, "ShepherdLost" },
};

/* Return the wall time of what a shepherd wrote down, as it is known now: its boot's clock
 * counts where that is ours. */
static int64_t wall_us(const struct local *l, const struct pod_state *s, int64_t at_us,
		       int64_t up_us)
{
	const struct clock *c = loop_clock(l->loop);

	if (up_us == 0 || strcmp(s->boot, c->boot) != 0)
		return at_us;
	return c->base_us + up_us + c->ahead_us;
}

static void set_state(struct local_pod *p, const struct pod_state *s)
{
	const struct pod_used *u = &s->used;

	p->state = *s;
	p->used = USED_UNKNOWN;
	p->used.user_us = u->user_us;
	p->used.system_us = u->system_us;
	p->used.memory_bytes = u->memory_bytes;
	p->used.read_bytes = u->read_bytes;
	p->used.written_bytes = u->written_bytes;
}

void local_pod_fact(const struct local *l, const struct local_pod *p, struct pod_fact *out)
{
	const struct pod_state *s = &p->state;

	*out = (struct pod_fact){
		.name = p->name,
		.namespace_ = "",
		.uid = p->uid,
		.token = p->token,
		.record = p->note,
		.node = l->node.name,
		.phase = s->started_us ? POD_RUNNING : POD_PENDING,
		.leaving = p->leaving,
		.reason = s->started_us ? "" : "Starting",
		.message = p->message,
		.start_us = wall_us(l, s, s->started_us, s->started_up_us),
		.end_us = wall_us(l, s, s->ended_us, s->ended_up_us),
		.gpus_milli = p->gpus_milli,
		.cpu_milli = p->cpu_milli,
		.memory_bytes = p->memory_bytes,
		.devices = p->devices,
		.n_devices = p->n_devices,
	};
	if (s->how == HOW_NOT)
		return;
	out->exit_code = state_exit_code(s);
	out->used = s->has_used ? &p->used : NULL;
	out->fault = ends[s->how].fault;
	if (s->how == HOW_EXIT && s->code == 0) {
		out->phase = POD_SUCCEEDED;
		out->reason = "Completed";
	} else {
		out->phase = POD_FAILED;
		out->reason =
			s->how == HOW_EXIT && s->text[0] ? "CannotStart" : ends[s->how].reason;
	}
}

/* ---- what is done about it ---- */

static int pod_open(const struct local *l, const struct local_pod *p)
{
	return openat(l->local_fd, p->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool state_differs(const struct pod_state *a, const struct pod_state *b)
{
	return a->how != b->how || a->started_us != b->started_us || a->starting != b->starting;
}

/* It could not be started for now. The asker hears of it once; it goes on being tried. */
void local_pod_trouble(struct local *l, struct local_pod *p, const char *why)
{
	snprintf(p->message, sizeof(p->message), "%.255s", why);
	if (p->owes_created && !p->told_retry)
		local_answer_created(l, p, ASK_RETRY, why);
	p->told_retry = true;
	local_pod_report(l, p);
}

/* Describe the end in words if the shepherd did not. */
static void describe_end(struct local_pod *p)
{
	const struct pod_state *s = &p->state;
	const char *name = s->how == HOW_SIGNAL ? gpuq_signal_name(s->code) : NULL;

	p->message[0] = '\0';
	if (s->text[0])
		snprintf(p->message, sizeof(p->message), "%s", s->text);
	else if (s->how == HOW_SIGNAL)
		snprintf(p->message, sizeof(p->message), "ended by signal %d (%s)", s->code,
			 name ? name : "?");
	else if (s->how == HOW_EXIT && s->code != 0)
		snprintf(p->message, sizeof(p->message), "exit code %d", s->code);
}

/* Read how far it has come; report it when that is news. */
static void look(struct local *l, struct local_pod *p, int pod_fd)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_state now;

	if (state_read(pod_fd, &now, &err) != 0) {
		log_warn("local.state_unreadable", "pod=%s why=%s", p->name, LOGS(err.text));
		return;
	}
	if (!state_differs(&now, &p->state))
		return;
	set_state(p, &now);
	describe_end(p);
	if (now.started_us)
		p->retry_at_us = p->backoff_us = 0;
	local_pod_report(l, p);
	if (now.how != HOW_NOT)
		local_log_poke(l, p->name);
}

static void put_on_disk(struct local *l, struct local_pod *p)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (loop_mono_us(l->loop) < p->retry_at_us)
		return;
	rc = local_files_create(l->local_fd, p, &err);
	if (rc == 0) {
		p->on_disk = true;
		p->retry_at_us = 0;
		p->message[0] = '\0';
		gpuq_buf_done(&p->record);
		gpuq_buf_done(&p->script);
		free(p->code);
		p->code = NULL;
		pod_watch(l, p);
		local_pod_report(l, p);
		return;
	}
	log_line(p->told_retry ? LOG_L_DEBUG : LOG_L_WARN, "local.create_failed", "pod=%s why=%s",
		 p->name, LOGS(err.text));
	if (rc == GPUQ_EEXIST) {
		p->owes_created = false;
		local_answer_created(l, p, ASK_CONFLICT, err.text);
		pod_gone(l, p);
		return;
	}
	p->retry_at_us = loop_mono_us(l->loop) + LOCAL_TICK_US;
	local_pod_trouble(l, p, err.text);
}

static void remove_if_wanted(struct local *l, struct local_pod *p)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (!p->forget)
		return;
	rc = local_files_remove(l->local_fd, p->name, &err);
	if (rc == 0)
		pod_gone(l, p);
	else if (rc != GPUQ_EBUSY) /* busy: its shepherd is about to exit; the tick comes back */
		log_warn("local.remove_failed", "pod=%s why=%s", p->name, LOGS(err.text));
}

static void write_leave(struct local *l, struct local_pod *p, int pod_fd)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	p->leave_unwritten =
		local_files_leave(pod_fd, p->leave_grace_us, p->leave_reason, &err) != 0;
	if (p->leave_unwritten)
		log_line(p->leave_failed ? LOG_L_DEBUG : LOG_L_WARN, "local.leave_failed",
			 "pod=%s why=%s", p->name, LOGS(err.text));
	p->leave_failed = p->leave_unwritten;
}

void local_pod_advance(struct local *l, struct local_pod *p)
{
	int fd;

	if (p->gone)
		return;
	if (!p->on_disk)
		put_on_disk(l, p);
	if (!p->on_disk)
		return;
	fd = pod_open(l, p);
	if (fd < 0) {
		if (errno != ENOENT)
			return; /* no descriptors just now: the next tick tries again */
		log_warn("local.pod_vanished", "pod=%s", p->name);
		pod_gone(l, p);
		return;
	}
	if (p->leave_unwritten)
		write_leave(l, p, fd);
	look(l, p, fd);
	if (p->state.how == HOW_NOT && !p->launch && !state_locked(fd)) {
		/* Its shepherd may have written the end and gone between the two looks. */
		look(l, p, fd);
		if (p->state.how == HOW_NOT && loop_mono_us(l->loop) >= p->retry_at_us) {
			if (p->backoff_us && !p->state.starting && !p->message[0])
				local_pod_trouble(l, p,
						  "its shepherd ended before it began: is there "
						  "space in the state directory?");
			local_launch(l, p);
		}
	} else if (p->owes_created && !p->launch) {
		p->owes_created = false;
		local_answer_created(l, p, ASK_OK, "");
	}
	close(fd);
	if (p->state.how != HOW_NOT)
		remove_if_wanted(l, p);
}

/* ---- found again after a restart ---- */

static int load_one(struct local *l, const char *name, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(2 * ORDER_BYTES_MAX);
	struct local_pod *p = NULL;
	struct pod_state state;
	struct order o;
	int fd, rc;

	fd = openat(l->local_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0; /* a stray file: not ours to judge */
	rc = state_read(fd, &state, err);
	if (rc == 0)
		rc = order_read(fd, &a, &o, err);
	if (rc == GPUQ_ENOENT || rc == GPUQ_ECORRUPT || (rc == 0 && strcmp(o.pod, name) != 0)) {
		/* A power cut took the order before it was durable, so nothing was started. */
		log_warn("local.order_unreadable", "pod=%s begun=%d why=%s", LOGS(name),
			 state.starting, LOGS(err ? err->text : ""));
		rc = state.starting ? 0 : local_files_remove(l->local_fd, name, err);
		goto out;
	}
	if (rc != 0)
		goto out;
	p = pod_new(l, &o);
	if (!p) {
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory for pod %s", name);
		goto out;
	}
	p->on_disk = true;
	set_state(p, &state);
	describe_end(p);
	p->leaving = faccessat(fd, "leave", F_OK, 0) == 0;
	/* It may have been written and its shepherd not told: hearing it twice does no harm. */
	if (p->leaving && state.how == HOW_NOT)
		local_files_tell(fd, "leave\n");
	pod_add(l, p);
	pod_watch(l, p);
out:
	close(fd);
	gpuq_arena_done(&a);
	return rc;
}

int local_pods_load(struct local *l, struct gpuq_err *err)
{
	int fd = openat(l->local_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return gpuq_fail(err, GPUQ_EIO, "cannot read %s/local: %s", l->dir,
				 strerror(errno));
	}
	while (rc == 0 && (e = readdir(dir)))
		if (local_name_ok(e->d_name))
			rc = load_one(l, e->d_name, err);
	closedir(dir);
	return rc;
}

/* ---- asks ---- */

static void refuse(struct local *l, const char *pod, enum ask_outcome o, const char *why)
{
	local_answer(l, true, pod, o, "", why);
}

/* The owner comes first: by it the output of a pod is found that the ledger no longer knows. */
static void draw_uid(uint32_t owner, char out[33])
{
	unsigned char bytes[12];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort(); /* no less than 256 bytes are always given once the machine is up */
	snprintf(out, 9, "%08" PRIx32, owner);
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 8 + 2 * i, 3, "%02x", bytes[i]);
}

void local_pod_create(struct cluster *c, const struct pod_order *order)
{
	struct local *l = (struct local *)c;
	struct gpuq_arena a = GPUQ_ARENA_INIT(4 * ORDER_BYTES_MAX);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct local_pod *p = local_pod_find(l, order->name);
	struct order o;
	char uid[33];
	int rc;

	if (p && strcmp(p->token, order->token) == 0) {
		p->owes_created = true;
		local_pod_report(l, p);
		local_pod_advance(l, p);
		return;
	}
	if (p) {
		refuse(l, order->name, ASK_CONFLICT,
		       "a pod of this name with another token exists");
		return;
	}
	if (!local_name_ok(order->name)) {
		refuse(l, order->name, ASK_REFUSED, "not a name for a pod");
		return;
	}
	draw_uid(order->uid, uid);
	rc = local_order_build(l, order, uid, &a, &o, &err);
	p = rc == 0 ? pod_new(l, &o) : NULL;
	if (p) {
		p->record.max_bytes = ORDER_BYTES_MAX;
		order_write(&o, &p->record);
		p->code = order->code ? strdup(order->code) : NULL;
		if (o.script)
			gpuq_buf_add(&p->script, order->spec->script, order->spec->script_bytes);
	}
	if (p && (p->record.failed || p->script.failed || !p->code != !order->code)) {
		rc = gpuq_fail(&err, GPUQ_ETOOBIG, "its environment and command are too large");
		local_pod_free(l, p);
		p = NULL;
	}
	gpuq_arena_done(&a);
	if (!p) {
		refuse(l, order->name, ASK_REFUSED, rc != 0 ? err.text : "no memory");
		return;
	}
	p->owes_created = true;
	pod_add(l, p);
	local_pod_advance(l, p);
}

bool local_pod_meant(const struct local_pod *p, const struct pod_ref *ref)
{
	if (ref->uid && *ref->uid)
		return strcmp(ref->uid, p->uid) == 0;
	return !ref->token || !*ref->token || strcmp(ref->token, p->token) == 0;
}

void local_pod_delete(struct cluster *c, const struct pod_ref *ref, int64_t grace_us)
{
	struct local *l = (struct local *)c;
	struct local_pod *p = local_pod_find(l, ref->name);

	if (!p) {
		local_answer(l, false, ref->name, ASK_OK, "", "there is no such pod");
		return;
	}
	if (!local_pod_meant(p, ref)) {
		local_answer(l, false, ref->name, ASK_CONFLICT, "", "another pod has this name");
		return;
	}
	local_answer(l, false, ref->name, ASK_OK, "", "");
	if (!p->on_disk) {
		pod_gone(l, p);
		return;
	}
	if (p->state.how != HOW_NOT) {
		p->forget = true; /* nothing runs: as in a cluster, the object goes */
	} else {
		p->leaving = true;
		p->leave_grace_us = grace_us;
		p->leave_reason = ref->reason;
		p->leave_unwritten = true;
		local_pod_report(l, p);
	}
	local_pod_advance(l, p);
}

int local_pod_running(struct local *l, const struct pod_ref *ref)
{
	struct local_pod *p = local_pod_find(l, ref->name);

	if (!p || !local_pod_meant(p, ref) || !p->state.started_us || p->state.how != HOW_NOT)
		return -1;
	return pod_open(l, p);
}

int local_pod_signal(struct cluster *c, const struct pod_ref *ref, int signal, struct gpuq_err *err)
{
	struct local *l = (struct local *)c;
	int fd = local_pod_running(l, ref);
	char line[32];
	bool ok;

	if (fd < 0)
		return gpuq_fail(err, GPUQ_ECONFLICT, "not running");
	snprintf(line, sizeof(line), "signal %d%s%s\n", signal, ref->first_only ? " first" : "",
		 ref->warning ? " warning" : "");
	ok = local_files_tell(fd, line);
	close(fd);
	if (!ok)
		return gpuq_fail(err, GPUQ_ECONFLICT, "its shepherd does not listen");
	local_answer_signal(l, ref->name, signal);
	return 0;
}

void local_pod_forget(struct cluster *c, const struct pod_ref *ref)
{
	struct local *l = (struct local *)c;
	struct local_pod *p = local_pod_find(l, ref->name);
	const struct order nothing = {
		.pod = ref->name,
		.token = ref->token ? ref->token : "",
		.uid = ref->uid ? ref->uid : "",
		.devices = "",
	};

	if (!p) { /* it went before a restart, and that was not heard */
		p = pod_new(l, &nothing);
		if (!p)
			return;
		p->on_disk = true; /* it was */
		pod_add(l, p);
		pod_gone(l, p);
		return;
	}
	if (!local_pod_meant(p, ref))
		return;
	p->forget = true;
	if (!p->on_disk) {
		pod_gone(l, p);
		return;
	}
	if (p->state.how == HOW_NOT) { /* forgotten while it runs: then it must not run */
		p->leaving = true;
		p->leave_grace_us = 0;
		p->leave_unwritten = true;
	}
	local_pod_advance(l, p);
}
