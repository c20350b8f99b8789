#include "gpuqd/daemon.h"

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/sdnotify.h"
#include "gpuqd/base/spool.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/record/upgrade.h"
#include "gpuqd/state/record/model_apply.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/adopt/adopt.h"
#include "gpuqd/flow/bind/bind.h"
#include "gpuqd/flow/cut/cutter.h"
#include "gpuqd/flow/provision/asker.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/advise/estimate.h"
#include "gpuqd/flow/copies/restore.h"
#include "gpuqd/flow/copies/rota.h"
#include "gpuqd/flow/report/history_keep.h"
#include "gpuqd/config_live.h"
#include "gpuqd/default_rule.h"
#include "gpuqd/fence.h"
#include "gpuqd/files.h"
#include "gpuqd/identities.h"
#include "gpuqd/site_file.h"
#include "gpuqd/wallclock.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/load.h"
#include "gpuqd/flow/notify/outbox.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/refusal/refusals.h"
#include "gpuqd/flow/refusal/troubles.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/rpc/method/methods.h"
#include "gpuqd/rpc/rpc.h"
#include "gpuqd/store/batchlog.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/upgrade.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define SPACE_CHECK_US GPUQ_US_PER_S
#define PLACE_CHECK_US (2 * GPUQ_US_PER_S)
#define BACKUP_LOG_BYTES (INT64_C(256) << 20) /* that wait for a target that is away */
#define KEYS_CHECK_US (3600 * GPUQ_US_PER_S)

/* A file that was read again, and of which something is in use. It stays to the end: a copy of
 * the model that thinks in a thread of its own may still look at words of an older one. */
struct reread {
	struct reread *next;
	struct config config;
};

struct daemon {
	struct config *config;
	struct reread *reread;
	int argc;
	char **argv;
	char self[PATH_MAX];
	struct loop *loop;
	struct store *store;
	struct model *model;
	struct journal *journal;
	struct schedule *schedule;
	struct estimator *estimator;
	struct spool *cycles; /* NULL = they are not recorded */
	struct dispatch *dispatch;
	struct reconcile *reconcile;
	struct refusals *refusals;
	struct troubles *troubles;
	struct bind *bind;
	struct adopt *adopt;
	struct asker *asker;
	struct cutter *cutter;
	struct history_keep *history;
	struct files files;
	struct rota *rota; /* of backups; NULL = none are made */
	struct outbox *outbox;
	struct cluster *cluster;
	struct methods *methods;
	struct identities *identities;
	struct rpc_server *rpc;
	struct fence fence;
	struct default_rule *default_rule;
	struct loop_timer *fenced; /* the cluster is about to be made anew */
	struct loop_timer *space, *place, *keys, *watchdog, *reload;
	struct wallclock wallclock;
	bool stopping;
};

int daemon_check(const struct config *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf bytes = GPUQ_BUF_INIT;
	int rc = c->site ? site_file_read(c->site, &bytes, &err) : 0;

	gpuq_buf_done(&bytes);
	if (rc < 0) {
		fprintf(stderr, "gpuqd: %s\n", err.text);
		return EXIT_CONFIG;
	}
	printf("configuration is valid\n");
	return EXIT_OK;
}

/* ---- loading ---- */

/* *empty: nothing was ever stored there, not even an identity. A database whose first
 * start failed (a wrong site file) is as good as new. */
static int load_model(struct store *st, const struct config *c, struct model **out, bool *empty,
		      struct gpuq_err *err)
{
	unsigned char raw[4];
	char id[9];
	struct model *m;
	int rc;

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return gpuq_fail(err, GPUQ_EIO, "no random numbers");
	snprintf(id, sizeof(id), "%02x%02x%02x%02x", raw[0], raw[1], raw[2], raw[3]);
	m = model_new(id); /* a stored identity replaces this one */
	if (!m)
		return gpuq_no_memory(err);
	model_set_policy(m, &c->policy);
	rc = load_records(st, m, err);
	if (rc != 0) {
		model_free(m);
		return rc;
	}
	site_each(site_pool, m->site->pools, p)
		if (p->provisioning && p->provisioning->dropped)
			log_notice("site.provisioning",
				   "pool=%s: its stored provisioning had no effect and is left "
				   "out; its nodes come and go as they please",
				   LOGS(p->name));
	*empty = strcmp(m->cluster_id, id) == 0;
	model_set_besides(m, c->cluster == CLUSTER_KUBE);
	*out = m;
	return 0;
}

/* ---- the cluster ---- */

static int start_cluster(struct daemon *d, struct gpuq_err *err)
{
	const struct config *c = d->config;
	int rc;

	if (c->cluster == CLUSTER_KUBE) {
		struct cluster_kube_opts o = { .kubeconfig = c->kubeconfig,
					       .context = c->context,
					       .namespace_ = c->namespace_,
					       .cluster_id = d->model->cluster_id,
					       .creates_per_s = c->creates_per_s,
					       .plugin_timeout_us = c->plugin_timeout_us,
					       .node_lock_timeout_us = c->node_lock_timeout_us,
					       .turn_timeout_us = c->turn_timeout_us,
					       .metrics = c->metrics,
					       .kubelet_metrics = c->kubelet_metrics,
					       .measure_every_us = c->metrics_interval_us,
					       .code_store = c->code_store.to != NULL,
					       .store_id = d->fence.store_id,
					       .place = d->fence.place,
					       .words = d->fence.words };

		rc = cluster_kube_new(d->loop, &o, &d->cluster, err);
	} else {
		struct cluster_local_opts o = { .dir = c->state,
						.shepherd = d->self,
						.gpus = c->gpus,
						.cluster_id = d->model->cluster_id,
						.measure_every_us = c->metrics_interval_us,
						.no_new_privs = c->no_new_privs,
						.device_cgroup = c->device_cgroup };

		rc = cluster_local_new(d->loop, &o, &d->cluster, err);
	}
	if (rc < 0)
		return rc;
	log_info("cluster.start", "kind=%s", d->cluster->ops->kind);
	rc = d->cluster->ops->start(d->cluster, reconcile_sink(d->reconcile, d->cluster), err);
	if (rc < 0)
		return rc;
	dispatch_set_cluster(d->dispatch, d->cluster);
	refusals_set_cluster(d->refusals, d->cluster);
	bind_set_cluster(d->bind, d->cluster);
	adopt_set_cluster(d->adopt, d->cluster);
	asker_set_cluster(d->asker, d->cluster);
	cutter_set_cluster(d->cutter, d->cluster);
	files_set_cluster(&d->files, d->cluster);
	methods_set_cluster(d->methods, d->cluster);
	identities_set_cluster(d->identities, d->cluster);
	return 0;
}

static void stop_cluster(struct daemon *d)
{
	if (!d->cluster)
		return;
	schedule_ready(d->schedule, false);
	dispatch_set_cluster(d->dispatch, NULL);
	refusals_set_cluster(d->refusals, NULL);
	bind_set_cluster(d->bind, NULL);
	adopt_set_cluster(d->adopt, NULL);
	asker_set_cluster(d->asker, NULL);
	cutter_set_cluster(d->cutter, NULL);
	files_set_cluster(&d->files, NULL);
	methods_set_cluster(d->methods, NULL);
	identities_set_cluster(d->identities, NULL);
	d->cluster->ops->free(d->cluster);
	d->cluster = NULL;
}

static void start_anew(void *arg)
{
	struct daemon *d = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	d->fenced = NULL;
	if (!d->cluster)
		return; /* there was no space: it starts when there is */
	stop_cluster(d);
	if (start_cluster(d, &err) < 0) {
		log_err("cluster.start", "error=%s", LOGS(err.text));
		loop_stop(d->loop, EXIT_CLUSTER);
	}
}

/* Not from inside the cluster's callback. */
static void on_lost(void *arg)
{
	struct daemon *d = arg;

	if (!d->fenced)
		d->fenced = loop_after(d->loop, 0, start_anew, d);
}

/* ---- no space: forget what is not on disk, and wait ---- */

static void on_space_check(void *arg)
{
	struct daemon *d = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	d->space = NULL;
	if (store_has_space(d->store, NULL) < 0) {
		d->space = loop_after(d->loop, SPACE_CHECK_US, on_space_check, d);
		return;
	}
	log_notice("journal.space", "there is space again");
	journal_writable(d->journal);
	if (start_cluster(d, &err) < 0) {
		log_err("cluster.start", "error=%s", LOGS(err.text));
		loop_stop(d->loop, EXIT_CLUSTER);
	}
}

static void reload(void *arg)
{
	struct daemon *d = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct model *m = NULL;
	bool empty;

	d->reload = NULL;
	stop_cluster(d);
	if (load_model(d->store, d->config, &m, &empty, &err) < 0) {
		log_err("store.load", "error=%s", LOGS(err.text));
		loop_stop(d->loop, EXIT_IO);
		return;
	}
	model_free(d->model);
	d->model = m;
	journal_set_model(d->journal, m);
	outbox_reload(d->outbox);
	d->space = loop_after(d->loop, SPACE_CHECK_US, on_space_check, d);
}

static void on_no_space(void *arg)
{
	struct daemon *d = arg;

	/* Not from inside the store's callback: whoever is on the stack may hold pointers
	 * into the model. */
	if (!d->reload)
		d->reload = loop_after(d->loop, 0, reload, d);
}

static void on_broken(void *arg, const struct gpuq_err *err)
{
	struct daemon *d = arg;

	log_err("store.broken", "error=%s: what is stored is not known; stopping", LOGS(err->text));
	loop_stop(d->loop, EXIT_IO);
}

/* The state directory may be removed or replaced while nothing is written to it. */
static void on_place_check(void *arg)
{
	struct daemon *d = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	d->place = NULL;
	if (store_is_there(d->store, &err) < 0)
		on_broken(d, &err);
	else
		d->place = loop_after(d->loop, PLACE_CHECK_US, on_place_check, d);
}

/* ---- clocks and signals ---- */

static void on_keys_check(void *arg)
{
	struct daemon *d = arg;
	struct event ev = { .type = EV_KEYS_EXPIRED };

	journal_apply(d->journal, &ev, NULL);
	audit_trim(d->journal, loop_now_us(d->loop));
	d->keys = loop_after(d->loop, KEYS_CHECK_US, on_keys_check, d);
}

static void on_watchdog(void *arg)
{
	struct daemon *d = arg;

	sdnotify_watchdog();
	d->watchdog = loop_after(d->loop, sdnotify_watchdog_us() / 2, on_watchdog, d);
}

static void on_released(void *arg)
{
	loop_stop(((struct daemon *)arg)->loop, EXIT_OK);
}

static void on_term(void *arg)
{
	struct daemon *d = arg;

	if (d->stopping)
		return;
	d->stopping = true;
	log_notice("daemon.stop", "jobs keep running");
	sdnotify_stopping();
	if (d->cluster && d->cluster->ops->release)
		d->cluster->ops->release(d->cluster, on_released, d);
	else
		on_released(d);
}

static struct dispatch_opts dispatch_opts_of(struct daemon *d)
{
	const struct config *c = d->config;
	struct dispatch_opts o = { .local = c->cluster == CLUSTER_LOCAL,
				   .finished_pod_keep_us = c->finished_pod_keep_us,
				   .start_timeout_us = c->start_timeout_us,
				   .plugin_timeout_us = c->plugin_timeout_us };

	files_put_opts(&d->files, &o);
	return o;
}

/* Apply those keys of r that may change at run time; takes over r. */
static void take(struct daemon *d, struct reread *r)
{
	struct config *c = &r->config;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct dispatch_opts dispatch;
	struct history_limits keep;
	struct outbox_opts o;

	log_set_level((enum log_level)log_level_parse(c->log_level));
	if (rpc_server_set_operators(d->rpc, config_live_operators(c, &mem), &err) < 0)
		log_err("config.reload", "error=%s", LOGS(err.text));
	gpuq_arena_done(&mem);
	log_notice("config.reload", "operators=%zu log_level=%s webhooks=%zu", c->operators.n,
		   c->log_level, c->notify.hooks.n);
	config_live_tell_others(d->config, c);
	if (config_live_is_same(d->config, c)) {
		config_done(c);
		free(r);
		return;
	}
	config_live_put(d->config, c);
	journal_set_policy(d->journal, &d->config->policy);
	dispatch = dispatch_opts_of(d);
	dispatch_set_opts(d->dispatch, &dispatch);
	keep = config_live_history(d->config);
	history_keep_set(d->history, &keep);
	methods_set_backup_dir(d->methods, c->backup_dir);
	methods_set_operators_act(d->methods, c->operators_act_as_user);
	rpc_server_set_connections(d->rpc, (unsigned)c->connections_per_user);
	if (identities_reload(d->identities, &d->config->auth, &err) < 0)
		log_err("config.reload", "error=%s", LOGS(err.text));
	schedule_kick(d->schedule);
	config_live_outbox(c, &c->arena, &o);
	outbox_set_opts(d->outbox, &o);
	r->next = d->reread;
	d->reread = r;
}

/* SIGHUP: settings that may change while running; the others stay as they are. */
static void on_hup(void *arg)
{
	struct daemon *d = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct reread *r = calloc(1, sizeof(*r));
	int rc = r ? config_read(&r->config, d->argc, d->argv, &err) : gpuq_no_memory(&err);

	sdnotify_reloading();
	rpc_server_reload_tls(d->rpc);
	if (rc == 0 && (rc = identities_check(&r->config.auth, &err)) < 0)
		config_done(&r->config);
	if (rc == 0) {
		take(d, r);
	} else {
		log_err("config.reload", "error=%s: the old settings stay", LOGS(err.text));
		free(r);
	}
	sdnotify_ready();
}

/* ---- start to stop ---- */

static int apply_site_file(struct daemon *d, struct gpuq_err *err)
{
	struct gpuq_buf bytes = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_SITE_APPLIED };
	int rc = site_file_read(d->config->site, &bytes, err);

	if (rc == 0) {
		ev.at_us = loop_now_us(d->loop);
		ev.site.bytes = bytes.data;
		ev.site.len = bytes.len;
		ev.site.who = "gpuqd --site";
		rc = model_apply(d->model, &ev, err);
	}
	gpuq_buf_done(&bytes);
	if (rc == 0)
		log_info("site.applied", "file=%s queues=%u", LOGS(d->config->site),
			 d->model->n_queues);
	return rc;
}

/* An answer made without what is damaged would be a wrong one. */
static void on_damaged(const struct gpuq_err *err)
{
	log_err("store.damaged", "error=%s", LOGS(err->text));
	_exit(EXIT_IO);
}

static int restore(const struct config *c, const struct store_opts *o, struct gpuq_err *err)
{
	const struct restore_opts ro = { .state = c->state,
					 .source = c->restore,
					 .at = c->restore_at,
					 .plan = &c->backup,
					 .store = o };
	struct restored r;
	int rc = copies_restore(&ro, &r, err);
	char at[32] = "-";

	if (rc < 0)
		return rc;
	if (r.time_us)
		gpuq_instant_print(r.time_us, at, sizeof(at));
	log_notice("store.restored",
		   "file=%s state=%s position=%" PRIu32 "/%" PRIu64 " segments=%zu time=%s",
		   LOGS(r.file), LOGS(c->state), r.position.epoch, r.position.seq, r.n_segments,
		   at);
	return 0;
}

/* The database may be older than the cluster. The recovering state is stored together with the
 * new identity: from then on the database is no longer a copy. */
static int begin_recovery(struct daemon *d, const char *why, struct gpuq_err *err)
{
	struct event ev = { .type = EV_RECOVERY_BEGUN, .at_us = loop_now_us(d->loop) };
	int rc = model_apply(d->model, &ev, err);

	if (rc == 0)
		log_warn("recover.begun",
			 "reason=%s next=%u: nothing is started or removed until the cluster was "
			 "listed",
			 LOGS(why), d->model->next_job_id);
	return rc;
}

/* Without it there are copies alone: no reason not to start. */
static void begin_log(struct daemon *d)
{
	const struct backup_plan *p = &d->config->backup;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!backup_plan_is_set(p) || !p->log_every_us)
		batchlog_discard(d->config->state);
	else if (store_log_begin(d->store, BACKUP_LOG_BYTES, &err) < 0)
		log_err("backup.batches", "error=%s: copies are made without segments",
			LOGS(err.text));
}

static int open_store(struct daemon *d, struct gpuq_err *err)
{
	struct upgrade upgrade = UPGRADE_INIT;
	struct store_opts o = { .map_bytes = d->config->map_bytes,
				.upgrade = upgrade_record,
				.upgrade_arg = &upgrade,
				.unsafe_fs = d->config->unsafe_fs,
				.new_state = d->config->new_state,
				.damaged = on_damaged };
	const char *why_copy;
	struct batch b;
	bool fresh = false, empty = false, is_copy;
	int rc = d->config->restore ? restore(d->config, &o, err) : 0;

	if (rc == 0)
		rc = store_open(d->config->state, &o, &d->store, &fresh, err);
	upgrade_done(&upgrade);
	if (rc == 0)
		begin_log(d);
	if (rc == 0)
		rc = history_index(d->store, err);
	if (rc == 0)
		rc = load_model(d->store, d->config, &d->model, &empty, err);
	if (rc == 0)
		rc = wallclock_resume(d->loop, d->model, empty, err);
	if (rc == 0)
		rc = default_rule_settle(d->model, loop_now_us(d->loop), err);
	if (rc < 0)
		return rc;
	is_copy = store_is_copy(d->store, &why_copy);
	if (is_copy)
		rc = begin_recovery(d, why_copy, err);
	else if (empty && d->config->site)
		rc = apply_site_file(d, err);
	else if (d->config->site)
		log_notice("site.kept", "the store holds a site already: %s is not applied",
			   LOGS(d->config->site));
	if (rc < 0)
		return rc;
	/* The identity is on disk before the first pod can carry it. */
	change_batch_init(&b);
	model_collect(d->model, &b);
	rc = is_copy ? store_renew_identity(d->store, &b, err)
	     : b.n   ? store_write_now(d->store, &b, err)
		     : 0;
	change_batch_done(&b);
	return rc;
}

static int open_sockets(struct daemon *d, struct gpuq_err *err)
{
	mode_t mode = geteuid() == 0 ? 0666 : 0600;
	int rc = 0;

	for (size_t i = 0; i < d->config->listen.n && rc == 0; i++) {
		const char *addr = d->config->listen.items[i];
		char dir[PATH_MAX];
		char *slash;

		if (strncmp(addr, "unix:", 5) != 0) {
			rc = rpc_server_listen(d->rpc, addr, mode, err);
			if (rc == 0)
				log_info("listen", "addr=%s", LOGS(addr));
			continue;
		}
		/* The folder of the default places is ours to make. */
		snprintf(dir, sizeof(dir), "%s", addr + strlen("unix:"));
		slash = strrchr(dir, '/');
		if (slash && slash != dir) {
			*slash = '\0';
			if (mkdir(dir, geteuid() == 0 ? 0755 : 0700) != 0 && errno != EEXIST)
				log_debug("listen.mkdir", "dir=%s error=%s", LOGS(dir),
					  strerror(errno));
		}
		rc = rpc_server_listen(d->rpc, addr, mode, err);
		if (rc == 0)
			log_info("listen", "addr=%s", LOGS(addr));
	}
	return rc;
}

static int start_outbox(struct daemon *d, struct gpuq_err *err)
{
	struct outbox_opts o;

	config_live_outbox(d->config, &d->config->arena, &o);
	return outbox_new(d->journal, &o, &d->outbox, err);
}

static int start_rota(struct daemon *d, struct gpuq_err *err)
{
	const struct rota_opts o = { .plan = d->config->backup,
				     .cluster_id = d->model->cluster_id,
				     .scratch = d->config->state,
				     .self = d->self,
				     .config = d->config->file };

	return rota_new(d->journal, &o, &d->rota, err);
}

int daemon_exit_of(int rc)
{
	switch (rc) {
	case 0:
		return EXIT_OK;
	case GPUQ_EBUSY:
		return EXIT_BUSY;
	case GPUQ_EINVAL:
	case GPUQ_ERANGE:
	case GPUQ_ENOENT:
	case GPUQ_EPERM:
	case GPUQ_ECONFLICT:
		return EXIT_CONFIG;
	case GPUQ_EIO:
	case GPUQ_ESTORAGE:
	case GPUQ_ECORRUPT:
		return EXIT_IO;
	case GPUQ_EUNREACH:
		return EXIT_CLUSTER;
	default:
		return EXIT_ANY;
	}
}

static int build(struct daemon *d, struct gpuq_err *err)
{
	struct journal_opts jo = { on_no_space, on_broken, d };
	struct dispatch_opts dopts;
	const struct history_limits keep = config_live_history(d->config);
	struct rpc_opts ro = { .server = "gpuqd/" PACKAGE_VERSION,
			       .version = PACKAGE_VERSION,
			       .operators = config_live_operators(d->config, &d->config->arena),
			       .connections_per_user = (unsigned)d->config->connections_per_user,
			       .tls = { .cert = d->config->tls.cert,
					.key = d->config->tls.key,
					.client_ca = d->config->tls.client_ca,
					.by_email = d->config->auth.certificate_user == 1 } };
	int rc = loop_new(&d->loop, err);

	if (rc == 0)
		rc = open_store(d, err);
	if (rc == 0)
		fence_init(&d->fence, d->config->state, d->store);
	if (rc == 0)
		wallclock_hook(&d->wallclock, d->loop);
	if (rc == 0)
		rc = journal_new(d->loop, d->store, d->model, &jo, &d->journal, err);
	if (rc == 0)
		rc = schedule_new(d->journal, &d->schedule, err);
	wallclock_set(&d->wallclock, d->journal, d->schedule);
	if (rc == 0 && d->config->record_dir)
		rc = spool_open(d->config->record_dir, "cycles", d->config->record_bytes,
				&d->cycles, err);
	if (rc == 0)
		schedule_record(d->schedule, d->cycles);
	if (rc == 0)
		rc = estimator_new(d->journal, &d->estimator, err);
	if (rc == 0)
		rc = files_open(&d->files, d->journal, d->config->state,
				d->config->cluster == CLUSTER_LOCAL, &d->config->code_store, err);
	dopts = dispatch_opts_of(d);
	if (rc == 0)
		rc = dispatch_new(d->journal, &dopts, &d->dispatch, err);
	if (rc == 0)
		rc = reconcile_new(d->journal, d->dispatch, d->schedule, &d->reconcile, err);
	if (rc == 0)
		rc = bind_new(d->journal, d->reconcile, &d->bind, err);
	if (rc == 0) {
		reconcile_on_unbound(d->reconcile, bind_seen, d->bind);
		reconcile_on_released(d->reconcile, bind_release, d->bind);
		rc = adopt_new(d->journal, d->reconcile, &d->adopt, err);
	}
	if (rc == 0)
		rc = asker_new(d->journal, d->schedule, &d->asker, err);
	if (rc == 0)
		rc = cutter_new(d->journal, &d->cutter, err);
	if (rc == 0)
		reconcile_adopt(d->reconcile, d->config->adopt_cluster);
	if (rc == 0)
		rc = refusals_new(d->journal, d->reconcile, &d->refusals, err);
	if (rc == 0)
		rc = troubles_new(d->journal, d->dispatch, d->refusals, &d->troubles, err);
	if (rc == 0)
		rc = history_keep_new(d->journal, &keep, &d->history, err);
	if (rc == 0)
		rc = default_rule_new(d->journal, &d->default_rule, err);
	if (rc == 0)
		rc = start_rota(d, err);
	if (rc == 0)
		rc = start_outbox(d, err);
	if (rc == 0)
		rc = methods_new(d->journal, d->reconcile,
				 d->config->cluster == CLUSTER_KUBE ? "kube" : "local", &d->methods,
				 err);
	if (rc == 0)
		rc = identities_new(d->loop, &d->config->auth, d->methods, &d->identities, err);
	if (rc == 0) {
		methods_set_schedule(d->methods, d->schedule);
		methods_set_refusals(d->methods, d->refusals);
		methods_set_estimator(d->methods, d->estimator);
		methods_set_outbox(d->methods, d->outbox);
		methods_set_backup_dir(d->methods, d->config->backup_dir);
		files_wire(&d->files, d->dispatch, d->methods);
		methods_set_rota(d->methods, d->rota);
		methods_set_operators_act(d->methods, d->config->operators_act_as_user);
		methods_opts(d->methods, &ro);
		rc = rpc_server_new(d->loop, &ro, &d->rpc, err);
	}
	if (rc == 0) {
		methods_set_server(d->methods, d->rpc);
		identities_set_server(d->identities, d->rpc);
	}
	if (rc == 0)
		rc = loop_on_signal(d->loop, SIGTERM, on_term, d, err);
	if (rc == 0)
		rc = loop_on_signal(d->loop, SIGINT, on_term, d, err);
	if (rc == 0)
		rc = loop_on_signal(d->loop, SIGHUP, on_hup, d, err);
	if (rc == 0)
		fence_listen(&d->fence, d->journal, d->reconcile, d->schedule, on_lost, d);
	if (rc == 0)
		rc = start_cluster(d, err);
	/* Listen last: a client finds everything in place. */
	if (rc == 0)
		rc = open_sockets(d, err);
	return rc;
}

static void teardown(struct daemon *d, int code)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	loop_cancel(d->space);
	loop_cancel(d->place);
	loop_cancel(d->keys);
	loop_cancel(d->watchdog);
	wallclock_stop(&d->wallclock);
	loop_cancel(d->reload);
	loop_cancel(d->fenced);
	files_stop(&d->files);
	if (d->rpc)
		rpc_server_stop(d->rpc);
	if (d->schedule && d->dispatch && d->methods)
		stop_cluster(d);
	/* Replies that wait for the disk are sent; then open calls are told that their clients
	 * are gone, while their owners still exist. */
	store_close_writer(d->store);
	if (d->journal && journal_flush(d->journal, &err) < 0)
		log_err("journal.flush", "error=%s", LOGS(err.text));
	outbox_free(d->outbox);
	default_rule_free(d->default_rule);
	estimator_free(d->estimator);
	history_keep_free(d->history);
	identities_free(d->identities);
	rpc_server_free(d->rpc);
	/* A thread that waits for a target that hangs has the store: all else is done. */
	if (!rota_stop(d->rota))
		_exit(code);
	methods_free(d->methods);
	files_close(&d->files);
	rota_free(d->rota);
	troubles_free(d->troubles);
	refusals_free(d->refusals);
	reconcile_free(d->reconcile);
	asker_free(d->asker);
	adopt_free(d->adopt);
	cutter_free(d->cutter);
	bind_free(d->bind);
	dispatch_free(d->dispatch);
	schedule_free(d->schedule);
	spool_close(d->cycles);
	journal_free(d->journal);
	store_close(d->store);
	model_free(d->model);
	loop_free(d->loop);
	while (d->reread) {
		struct reread *r = d->reread;

		d->reread = r->next;
		config_done(&r->config);
		free(r);
	}
}

int daemon_run(struct config *c, int argc, char **argv)
{
	struct daemon d = { .config = c, .argc = argc, .argv = argv };
	struct gpuq_err err = GPUQ_ERR_INIT;
	ssize_t n;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	umask(077);
	n = readlink("/proc/self/exe", d.self, sizeof(d.self) - 1);
	d.self[n > 0 ? n : 0] = '\0';
	sdnotify_init();
	rc = build(&d, &err);
	if (rc < 0) {
		log_err("daemon.start", "error=%s", LOGS(err.text));
		teardown(&d, daemon_exit_of(rc));
		return daemon_exit_of(rc);
	}
	log_notice("daemon.ready", "version=%s state=%s cluster=%s id=%s jobs=%u", PACKAGE_VERSION,
		   LOGS(c->state), d.cluster->ops->kind, d.model->cluster_id, d.model->n_jobs);
	d.place = loop_after(d.loop, PLACE_CHECK_US, on_place_check, &d);
	d.keys = loop_after(d.loop, KEYS_CHECK_US, on_keys_check, &d);
	wallclock_start(&d.wallclock);
	if (sdnotify_watchdog_us())
		d.watchdog = loop_after(d.loop, sdnotify_watchdog_us() / 2, on_watchdog, &d);
	sdnotify_ready();
	rc = loop_run(d.loop);
	teardown(&d, rc);
	return rc;
}
