/* config.h - what the process needs to know: listeners, paths, credentials, limits
 *
 * Owns     the keys of gpuqd.yaml, their defaults, and the options of gpuqd.
 * Touches  the file named; the environment for default places.
 * Used by  main.c, daemon.c.
 *
 * Options win over the file, the file wins over the defaults. Queues, pools and the
 * like are not here: they live in the database (site.h).
 */
#ifndef GPUQD_CONFIG_H
#define GPUQD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/config_notify.h"
#include "gpuqd/config_remote.h"
#include "gpuqd/flow/code/code_store.h"
#include "gpuqd/flow/copies/plan.h"
#include "gpuqd/site/policy.h"
#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"

enum config_cluster { CLUSTER_AUTO, CLUSTER_LOCAL, CLUSTER_KUBE };

struct config {
	struct gpuq_arena arena;
	struct gpuq_arena names; /* of make_cert */
	const char *file; /* that was read, or NULL */
	struct gpuq_strlist listen; /* "unix:/path", "tls://address:port" */
	struct config_tls tls;
	struct config_auth auth;
	const char *state;
	int cluster; /* enum config_cluster; never AUTO after config_read */
	const char *kubeconfig, *context, *namespace_;
	int64_t gpus; /* of the local cluster; -1 = ask the driver */
	const char *site;
	struct gpuq_strlist operators;
	const char *log_level;
	int64_t finished_pod_keep_us; /* -1 = the cluster's default */
	int64_t start_timeout_us;
	int64_t plugin_timeout_us, node_lock_timeout_us, turn_timeout_us;
	int64_t creates_per_s;
	int64_t connections_per_user;
	struct gpuq_strlist metrics; /* URLs of what devices do */
	bool kubelet_metrics;
	int64_t metrics_interval_us; /* 0 = it is not measured */
	const char *backup_dir; /* NULL = none */
	struct backup_plan backup;
	struct code_store_plan code_store;
	const char *record_dir; /* NULL = cycles are not recorded */
	int64_t record_bytes;
	int64_t map_bytes;
	int64_t history_keep_us, history_max, history_bytes; /* ended jobs; 0 = whatever */
	bool adopt_cluster;
	bool unsafe_fs;
	bool operators_act_as_user;
	const char *restore; /* a backup; NULL = none. An option alone, as the next two */
	const char *restore_at; /* up to when; NULL = all of it */
	bool new_state; /* options alone: what is said once must not stand in a file */
	bool audit;
	struct gpuq_strlist make_cert; /* names of the certificate; an option alone */
	bool no_new_privs, device_cgroup; /* of jobs on the local cluster */
	struct config_notify notify;
	struct policy policy;
	/* what was requested on the command line */
	bool check, print, print_keys, help, version;
};

/* Read options and file. Returns 0; GPUQ_EINVAL for options (err->text says what), or
 * with "file:line:col: ..." for the file; GPUQ_EIO, GPUQ_EPERM. On failure nothing is
 * left for config_done(). */
int config_read(struct config *c, int argc, char **argv, struct gpuq_err *err);
void config_done(struct config *c);

/* Keys in which they differ and that take effect at the next start only, separated by commas. */
void config_not_live(const struct config *was, const struct config *is, struct gpuq_buf *out);

void config_usage(struct gpuq_buf *out);
/* All keys with their values as YAML; where a value comes from as a comment. */
void config_print(const struct config *c, struct gpuq_buf *out);

extern const struct gpuq_schema config_schema;

#endif
