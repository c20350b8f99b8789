/* spec.h - a job as its owner describes it
 *
 * Owns     struct gpuq_spec, its schema, its defaults and checks.
 * Touches  memory only.
 * Used by  the CLI (three front ends: job file, manifest, script), the daemon
 *          (validates again what came over the wire), the cluster adapters.
 *
 * All front ends end in one struct gpuq_spec; gpuq_spec_write prints it in gpuq's
 * own form (gpuq-job(5)), which reads back to the same struct. Memory of a
 * spec belongs to the arena it was read into.
 */
#ifndef LIBGPUQ_SPEC_H
#define LIBGPUQ_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/notify.h"
#include "libgpuq/schema.h"
#include "libgpuq/val.h"

/* Where a pod may go: one requirement on node labels, as in Kubernetes. */
enum gpuq_op {
	GPUQ_OP_IN,
	GPUQ_OP_NOT_IN,
	GPUQ_OP_EXISTS,
	GPUQ_OP_NOT_EXISTS,
	GPUQ_OP_GT,
	GPUQ_OP_LT
};

struct gpuq_require {
	const char *key; /* label; "metadata.name" = the node's own name (matchFields) */
	int op; /* enum gpuq_op */
	struct gpuq_strlist values;
};

struct gpuq_term { /* all of them must hold */
	struct gpuq_require *all;
	size_t n;
	int64_t weight; /* of a preferred term, 1..100; 0 for a required one */
};

struct gpuq_toleration {
	const char *key; /* "" = every key (with exists) */
	bool exists; /* operator Exists; else Equal */
	const char *value;
	const char *effect; /* "" = every effect */
	int64_t seconds; /* tolerationSeconds of NoExecute; -1 = for ever */
};

struct gpuq_nfs {
	const char *server, *path; /* path: the directory that is exported */
};

struct gpuq_volume {
	const char *claim, *config_map, *secret, *host_path; /* exactly one, or nfs, or memory */
	struct gpuq_nfs *nfs;
	const char *path; /* where it is mounted */
	const char *sub_path; /* the part of it that is; NULL = all */
	bool read_only;
	bool given; /* by the site, not by the job: no key */
	int64_t memory_bytes; /* > 0: a memory-backed emptyDir of that size (/dev/shm) */
};

/* Devices that Kubernetes has as objects. */
struct gpuq_claim_option {
	const char *class_; /* DeviceClass */
	int64_t count; /* 0 = 1 */
	bool all; /* every one of the node that fits */
	struct gpuq_strlist selectors; /* cel/cel.h */
};

struct gpuq_claim {
	const char *name; /* in the pod */
	/* Exactly one: an object of the queue's namespace, or what gpuqd is to make one of. */
	const char *claim, *template_, *class_;
	int64_t count; /* with class_, as in an option */
	bool all;
	struct gpuq_strlist selectors;
	struct gpuq_claim_option *first; /* in order of preference */
	size_t n_first; /* 0..GPUQ_CLAIM_OPTIONS_MAX */
	/* With claim: those of a pod's gpus_milli that are its devices, which its pods share; gpuqd fills this in. */
	int64_t shares;
};

/* Every `size` pods of a group stand together inside one domain of `level`. */
struct gpuq_slice {
	const char *level;
	int64_t size; /* 1..GPUQ_PODS_MAX; divides that of the layer around it */
};

/* Alike pods of a job. */
/* Which combinations of the alternatives of its claims a pod was placed with: numbers from 1, in order of
 * preference. first 0 = whichever. */
struct gpuq_alternatives {
	uint16_t first, last;
};

struct gpuq_group {
	const char *name; /* "main" when the job has one group and names none */
	int64_t pods_min; /* 1..GPUQ_PODS_MAX; the gang */
	int64_t pods_max; /* >= pods_min; more is elastic */
	/* per pod */
	int64_t gpus_milli; /* whole devices are multiples of 1000 */
	int64_t gpu_memory_bytes, gpu_cores; /* of one device; 0 = not asked */
	int64_t gpu_cores_limit; /* percent that it may use while others do not; 0 = gpu_cores */
	const char *mig; /* "1g.10gb", or NULL */
	struct gpuq_strlist mig_more; /* profiles that do as well; 0..GPUQ_MIG_PROFILES_MAX - 1 */
	bool mig_ok; /* so does an instance that has gpu_memory */
	int64_t cpu_milli; /* 0 = not counted */
	int64_t memory_bytes; /* 0 = not counted */
	struct gpuq_amount *resources; /* countable ones, by name; devices only where named */
	size_t n_resources; /* 0..GPUQ_RESOURCES_MAX */
	/* what runs */
	const char *image;
	struct gpuq_strlist command, args;
	struct gpuq_strmap env;
	struct gpuq_volume *volumes;
	size_t n_volumes;
	const char *workdir;
	/* where it may run: every required term list must have one term that holds */
	struct gpuq_term *required; /* OR of terms; n_required = 0: anywhere */
	size_t n_required;
	struct gpuq_term *preferred;
	size_t n_preferred;
	struct gpuq_toleration *tolerations;
	size_t n_tolerations;
	struct gpuq_strlist nodes, exclude; /* node names: only these, none of these */
	const char *topology_required, *topology_preferred; /* level, or NULL */
	struct gpuq_slice *slices; /* outermost first */
	size_t n_slices;
	/* A Kubernetes pod template (metadata + spec) as its owner wrote it, from a
	 * manifest; NULL for gpuq's own form. The fields above are read from it. */
	struct gpuq_val *template_;
	const char *runtime_class; /* RuntimeClass of the pods, or NULL */
	struct gpuq_claim *claims; /* of devices */
	size_t n_claims; /* 0..GPUQ_CLAIMS_MAX */
	/* Its devices are those of a plugin, the claims are of others that quotas do not count; gpuqd fills this in. */
	bool claims_beside;
	/* No CPUs were named, so that it has one, unless the site says that its resources are devices: then none are
	 * counted. Not written: gpuqd decides, and clears it. */
	bool cpus_open;
};

enum gpuq_depend_type {
	GPUQ_DEP_AFTER,
	GPUQ_DEP_AFTERANY,
	GPUQ_DEP_AFTEROK,
	GPUQ_DEP_AFTERNOTOK,
	GPUQ_DEP_AFTERCORR,
	GPUQ_DEP_SINGLETON
};

struct gpuq_depend {
	int type; /* enum gpuq_depend_type */
	int64_t job; /* 0 for singleton */
	int64_t array_index; /* -1 = the whole job */
	int64_t delay_us; /* "after:12+5": minutes after its start */
};

const char *gpuq_depend_word(enum gpuq_depend_type type); /* "afterok" */
/* "afterok:12", "after:12_3+5", "singleton"; in a. NULL: no memory. */
const char *gpuq_depend_print(struct gpuq_arena *a, const struct gpuq_depend *d);

struct gpuq_range { /* first, first + step, ... <= last */
	int64_t first, last, step;
};

struct gpuq_array {
	struct gpuq_range *ranges; /* sorted, disjoint; NULL = no array */
	size_t n_ranges;
	int64_t size; /* elements */
	int64_t throttle; /* most at once; 0 = no limit */
};

/* Why a failed attempt may be tried again. */
enum gpuq_retry_on {
	GPUQ_RETRY_INFRA = 1,
	GPUQ_RETRY_FAILURE = 2,
	GPUQ_RETRY_OOM = 4,
	GPUQ_RETRY_TIMEOUT = 8
};

struct gpuq_retry {
	int64_t limit; /* attempts beyond the first, 0..GPUQ_RETRY_MAX */
	unsigned on; /* enum gpuq_retry_on, or'ed */
	uint8_t *exits; /* "exit:75": exit codes that count as well */
	size_t n_exits;
};

struct gpuq_checkpoint {
	int signal; /* 0 = none */
	int64_t grace_us; /* between the signal and the kill */
	int64_t interval_us; /* how often the job saves itself; 0 = unknown */
};

/* The origin of a job that was not submitted: pods of the cluster that leave their node to gpuqd. */
struct gpuq_origin {
	const char *kind, *name, *uid; /* of the object that owns its pods, or of the pod itself */
	const char *namespace_;
	struct gpuq_strlist pods; /* "NAME UID" of each, in the order of groups */
	/* It was suspended, and its pods wait behind gpuqd's gate; before the first of them is there, it stands for
	 * that in pods. */
	bool gated;
};

/* How it was submitted; only the local cluster uses it. */
struct gpuq_context {
	const char *cwd; /* absolute */
	const char *host; /* the machine; NULL = not known */
	const char *
		command; /* the script's absolute path, or the command, and arguments; NULL = a job file */
	bool interactive; /* who submitted it attends it: srun, salloc, gpuq run */
	struct gpuq_strmap environ; /* of the submitter */
	int64_t umask; /* -1 = not known */
	int64_t resubmit_of; /* the job that this one does again; 0 = none */
	struct gpuq_origin *origin; /* NULL = it was submitted */
};

/* Where its files are in a pod. */
#define GPUQ_CODE_PATH "/gpuq-code"
#define GPUQ_SCRIPT_PATH "/gpuq" /* where its script is */
#define GPUQ_STEPS_PATH "/gpuq-steps" /* gpuq, in pods whose image has none */

/* The command behind which a job that launches runs its own. */
#define GPUQ_LAUNCH_COMMAND "gpuq", "slurm", "srun", "--mpi=launch", "--"

/* A directory that travels with the job, as an archive that the server has by its digest. */
struct gpuq_spec_code {
	const char *dir; /* as its owner wrote it; NULL = none */
	const char *digest; /* 64 hex digits; NULL = it has not been carried yet */
	const char *subdir; /* below it, where the job runs; NULL = its top */
	int64_t bytes; /* of the archive */
	bool none; /* none, even where the queue has it for scripts */
};

/* When a job stops to wait for a flavor and goes on to the next one. All 0: it does not wait. */
struct gpuq_flavor_rule {
	int64_t for_us; /* this long; 0 = without end where refusals are given */
	int64_t refusals; /* until as many requests for nodes of it have failed; 0 = they do not count */
	int64_t max_price_micro; /* for a device and hour; dearer nodes of it are not used; 0 = any */
};
#define GPUQ_REFUSALS_MAX 16

/* Read and write [NAME, {name, for, refusals, max_price}, ...]; rules: one for each name, NULL where none
 * has any. */
int gpuq_flavors_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_strlist *names,
		      const struct gpuq_flavor_rule **rules);
struct gpuq_val *gpuq_flavors_write(struct gpuq_arena *a, const struct gpuq_strlist *names,
				    const struct gpuq_flavor_rule *rules);

/* True if the job waits for the flavor before it goes on to the next one. */
bool gpuq_flavor_waits(const struct gpuq_flavor_rule *r);

/* A boolean that may be left open. At most one is true. */
struct gpuq_choice {
	bool yes, no;
};
extern const struct gpuq_custom gpuq_choice_kind;

struct gpuq_spec {
	const char *name; /* [A-Za-z0-9._-]{1,63}; default: the file's or the command's name */
	const char *queue; /* NULL = the daemon chooses */
	const char *account, *qos, *comment, *reservation;
	const char *namespace_; /* of a manifest: must be the queue's; NULL = not given */
	int64_t time_us; /* walltime; 0 = the queue's default; GPUQ_UNLIMITED */
	int64_t time_min_us; /* it may be given less, down to this, to start sooner; 0 = not */
	int64_t begin_us, deadline_us; /* instants; 0 = none */
	int64_t nice; /* -1000000..1000000; larger waits longer */
	int64_t priority; /* fixed priority, operators only; 0 = computed */
	bool hold;
	bool requeue; /* may be started again after an eviction (default true) */
	struct gpuq_strlist flavors; /* in order of preference; empty = any */
	const struct gpuq_flavor_rule *flavor_rules; /* of each of them; NULL = none */
	struct gpuq_strmap licenses; /* name -> count */
	struct gpuq_group *groups;
	size_t n_groups; /* 1..GPUQ_GROUPS_MAX */
	struct gpuq_array array;
	struct gpuq_retry retry;
	struct gpuq_checkpoint checkpoint;
	int64_t grace_us; /* between TERM and KILL; 0 = default 30 s */
	struct gpuq_depend *depends;
	size_t n_depends;
	bool depends_any; /* one of them is enough ("?" in Slurm's list) */
	bool kill_on_invalid_dep;
	/* A script travels in the spec, never as a path. */
	const char *script; /* text, NULL = none; its #! line says how it runs */
	size_t script_bytes;
	struct gpuq_strlist script_args;
	struct gpuq_spec_code code;
	int64_t ntasks, ntasks_per_node; /* 0 = not given; become GPUQ_NTASKS... */
	int64_t cpus_per_task;
	const char *memory_per; /* "cpu", "gpu": how memory was requested; NULL = of a pod */
	const char *chdir, *output, *error, *input; /* local cluster; patterns of sbatch */
	bool append; /* open output for append */
	bool input_open; /* standard input stays open for whoever attaches */
	bool tty; /* standard input and output are a terminal */
	int signal; /* warn before walltime; 0 = none */
	int64_t signal_lead_us;
	bool signal_batch_only;
	struct gpuq_strmap annotations, labels; /* of the owner, put on the pods untouched */
	struct gpuq_context context;
	struct gpuq_strlist mail_type;
	const char *mail_user;
	struct gpuq_notify notify;
	bool exclusive; /* whole nodes */
	int isolation; /* at least; enum gpuq_isolation */
	int spot; /* enum gpuq_spot */
	bool slurm_env; /* SLURM_* beside GPUQ_* variables; scripts with #SBATCH lines have them */
	struct gpuq_choice
		launch; /* of several pods only the first runs the script: it launches in the others */
};

extern const struct gpuq_schema gpuq_spec_schema, gpuq_group_schema, gpuq_volume_schema;
extern const struct gpuq_schema gpuq_claim_schema;
bool gpuq_spec_has_key(const char *key); /* of a job file */

/* The annotation by which a template's pods have an index of their own, as those of an Indexed
 * Job: gpuqd fills it in, with the label, the variable and the host name that go with it. */
#define GPUQ_COMPLETION_INDEX "batch.kubernetes.io/job-completion-index"

enum gpuq_form { GPUQ_FORM_JOB, GPUQ_FORM_MANIFEST, GPUQ_FORM_SCRIPT };

/* Requests of a script's lines to the submitting program: #SBATCH --wait. */
enum gpuq_ask {
	GPUQ_ASK_WAIT = 1,
	GPUQ_ASK_PARSABLE = 2,
	GPUQ_ASK_QUIET = 4,
	GPUQ_ASK_TEST_ONLY = 8,
	GPUQ_ASK_VERBOSE = 16
};

struct gpuq_specs {
	struct gpuq_spec *items;
	size_t n;
	enum gpuq_form form;
	unsigned asks; /* enum gpuq_ask, or'ed */
	/* The directives of a script, by option, and where: "train.sh:3:9: ". The last of an
	 * option counts; "" = the command line said it. */
	struct gpuq_strmap places;
};

/* The submitter's clock: between an instant and what the wall shows then, both as
 * microseconds since 1970 (of the wall as if it were UTC's). */
struct gpuq_zone {
	int64_t (*to_wall)(int64_t us);
	int64_t (*from_wall)(int64_t wall_us);
};

/* Options that go for every job of a file and win over it: `gpuq submit -p ml -g 4`.
 * The table gpuq_spec_options serves them and the #GPUQ and #SBATCH lines of scripts. */
struct gpuq_spec_opts {
	const char *file; /* name for messages */
	const char *default_name; /* of a job that names none: the file's base name */
	int64_t now_us;
	bool ignore_other_kinds; /* objects beside the jobs of a manifest are told, not refused */
	bool ignore_unknown; /* unknown #SBATCH/#GPUQ directives are skipped */
	bool slurm; /* argv is that of a command of Slurm's */
	/* For times of day in Slurm's words, which #SBATCH lines and such an argv speak;
	 * NULL: they mean UTC, as gpuq's do. */
	const struct gpuq_zone *zone;
	const char *const
		*argv; /* command-line options, as "--gpus=4" ... NULL-terminated; may be NULL */
	const char *const *args; /* the script's arguments; may be NULL */
	/* The submitter's context, copied into each spec, its environment as --export says. May
	 * be NULL; must live as long as the arena. */
	const struct gpuq_context *context;
	struct gpuq_buf *warnings; /* of gpuq_spec_from_command, as below; may be NULL */
};

/* Read a file of any form into specs (all of them or none).
 *
 * `#!` first = script; a document with apiVersion = manifest; else a job file.
 * warnings (may be NULL) gets one line for each thing that was understood but is
 * not used. Returns 0; GPUQ_EINVAL with "file:line:col: path: expected ...";
 * GPUQ_ETOOBIG; GPUQ_ENOMEM. */
int gpuq_specs_read(struct gpuq_arena *a, const struct gpuq_spec_opts *opts, const char *text,
		    size_t n, struct gpuq_specs *out, struct gpuq_buf *warnings,
		    struct gpuq_err *err);

/* A spec from `gpuq run -- COMMAND...`: options as above, command and arguments. */
int gpuq_spec_from_command(struct gpuq_arena *a, const struct gpuq_spec_opts *opts,
			   const char *const *command, struct gpuq_spec *out, struct gpuq_err *err);

/* One option of sbatch's and gpuq's vocabulary: what opts->argv may hold (as
 * "--name=value", "--name", "-Nvalue"...), and what help and completion show. */
struct gpuq_spec_option {
	const char *name; /* "gpus-per-node" */
	char letter; /* 'N', or 0 */
	char arg; /* 'n' none, 'r' required, 'o' optional */
	const char *metavar, *doc;
};
extern const struct gpuq_spec_option gpuq_spec_options[]; /* ends with name == NULL */
/* Options of sbatch's that have no effect, and those that are refused: doc says why, and
 * what to do instead. */
extern const struct gpuq_spec_option gpuq_spec_unused[], gpuq_spec_refused[];

/* From and to the normalised tree (wire, store, --dry-run). Reading validates all
 * that can be known without a site; r->file NULL gives field paths. */
int gpuq_spec_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *out);
struct gpuq_val *gpuq_spec_write(struct gpuq_arena *a, const struct gpuq_spec *spec);

/* Array sets: "0-99", "1,3,5-9:2" -> sorted disjoint ranges; and back. */
int gpuq_array_parse(struct gpuq_arena *a, const char *text, struct gpuq_array *out,
		     struct gpuq_err *err);
void gpuq_array_print(const struct gpuq_array *array, struct gpuq_buf *out); /* without throttle */

/* Resolve recipients of mail, their events and the webhook from notify, mail_type and mail_user
 * together; on = 0: no notification. submitter: the recipient when no other is given. */
void gpuq_spec_told(const struct gpuq_spec *spec, const char *submitter, struct gpuq_notify *mail,
		    struct gpuq_notify *web);

/* The devices that a group requests by the name of their resource, which is among its resources;
 * NULL = by none. */
const struct gpuq_amount *gpuq_group_device(const struct gpuq_group *g);

/* True if its devices are those of its claims. */
bool gpuq_group_claimed(const struct gpuq_group *g);
/* Return those of a pod's gpus_milli that are devices of ResourceClaims which its pods share: they count once. */
int64_t gpuq_group_shared_milli(const struct gpuq_group *g);

/* Return an absolute path as mount(2) reads it, in a: no empty part, no ".", no '/' at the end; NULL: no memory. */
const char *gpuq_path_plain(struct gpuq_arena *a, const char *path);

/* True if its script is the command line of --wrap. */
bool gpuq_spec_is_wrap(const struct gpuq_spec *spec);

/* Return the volume of the group that an absolute path lies below, the innermost; NULL = none. */
const struct gpuq_volume *gpuq_group_below(const struct gpuq_group *g, const char *path);
/* Return path without its "." and ".." parts, a relative one counted from `from`, which is absolute;
 * NULL = no memory. The parts above the root are the root, as for chdir(2). */
const char *gpuq_path_join(struct gpuq_arena *a, const char *from, const char *path);
/* True if a part of the path is "..". */
bool gpuq_path_goes_up(const char *path);
/* Return what is wrong with an environment variable of a pod; NULL = nothing. */
const char *gpuq_env_fault(const char *key, const char *val);
/* True for a variable that tells of the job, or the step, that a program runs in, by gpuq or Slurm: one that it submits
 * is another. */
bool gpuq_env_of_job(const char *key);

/* Totals of one job or array element. */
int64_t gpuq_spec_pods(const struct gpuq_spec *spec); /* sum of pods_min */
/* Return the variable that tells the memory of a pod of the group with so many whole devices, as Slurm has it: one of
 * SLURM_MEM_PER_NODE, _CPU and _GPU, by the option that requested it, since srun and mpirun refuse two of them. Sets
 * its value. NULL = no memory was requested. */
const char *gpuq_spec_memory_variable(const struct gpuq_spec *spec, const struct gpuq_group *g,
				      int64_t gpus, int64_t *mib);
int64_t gpuq_spec_gpus_milli(const struct gpuq_spec *spec); /* sum of pods_min x gpus */

#endif
