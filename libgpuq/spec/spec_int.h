/* spec_int.h - declarations shared by the files of the job spec
 *
 * Owns     nothing; not installed, included by spec_*.c and their tests only.
 * Touches  memory only.
 * Used by  spec_*.c.
 *
 * The small languages (arrays, dependencies, host lists...) are parsed from plain text
 * with an err that says only what is wrong; the caller adds the place in front.
 */
#ifndef LIBGPUQ_SPEC_SPEC_INT_H
#define LIBGPUQ_SPEC_SPEC_INT_H

#include "libgpuq/spec.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/spec/spec_check.h"
#include "libgpuq/spec/spec_template.h"
#include "libgpuq/spec/spec_util.h"

/* A list that grows; what it holds is handed over as a gpuq_strlist at the end. */
struct spec_list {
	const char **items;
	size_t n, room;
};

int spec_list_add(struct gpuq_arena *a, struct spec_list *l, const char *s);
struct gpuq_strlist spec_list_end(const struct spec_list *l);

/* ---- small languages (spec_text.c, spec_place.c) ---- */

int spec_depends_parse(struct gpuq_arena *a, const char *text, struct gpuq_spec *out,
		       struct gpuq_err *err); /* appends */
int spec_signal_parse(const char *text, struct gpuq_spec *out, struct gpuq_err *err);
int spec_licenses_parse(struct gpuq_arena *a, const char *text, struct gpuq_strmap *out,
			struct gpuq_err *err);
/* One word of retry's `on` list into out. */
int spec_retry_word(struct gpuq_arena *a, const char *word, struct gpuq_retry *out,
		    struct gpuq_err *err);
extern const char *const spec_retry_words[]; /* names of the bits, in order; NULL at the end */
/* Words of notify's `on`, or with slurm of --mail-type, as bits (spec_notify.c). */
int spec_notify_words(const struct gpuq_strlist *words, bool slurm, unsigned *on,
		      struct gpuq_err *err);
/* True if text has the form of a profile. */
bool spec_mig_ok(const char *text);
/* True if a profile, which has that form, fits on a card. */
bool spec_mig_fits(const char *text);
#define SPEC_MIG_LARGE                                                                             \
	"expected a MIG profile from 1g to 7g: a card has 7 slices of compute, '%.40s' more"

/* ---- the nearest valid requests (spec_nearest.c) ---- */

#define SPEC_NEAREST_ROOM 64

/* Write ": the nearest are 1 and 2": the multiples of step from low to high next to what was asked; nothing for
 * NAN, no number. Returns out. */
const char *spec_nearest(double asked, double low, double high, double step,
			 char out[SPEC_NEAREST_ROOM]);
/* The same for devices of a pod: whole ones up to most, or hundredths of one; 0 for less. */
const char *spec_nearest_devices(double asked, double most, char out[SPEC_NEAREST_ROOM]);
/* The same for a whole number from 1 to high that was written as a quantity, with the size of one where it counts
 * memory (0: it does not): "2Gi" of MiB is ": that is 2048". */
const char *spec_nearest_count(const char *text, int64_t unit_bytes, int64_t high,
			       char out[SPEC_NEAREST_ROOM]);

/* ---- MIG profiles (spec_mig.c) ---- */

/* Set the profiles of a group from an option: "1g.10gb", "1g.10gb,2g.20gb". */
int spec_mig_parse(struct gpuq_arena *a, const char *text, struct gpuq_group *g,
		   struct gpuq_err *err);
/* Check what a group says of instances, and how the groups of a job go together: 0, or the sentence in err
 * and the key that it is about. */
int spec_mig_check(const struct gpuq_group *g, const char **key, struct gpuq_err *err);
int spec_mig_check_job(const struct gpuq_spec *s, struct gpuq_err *err);

/* "n[1-3,7],m1" -> n1 n2 n3 n7 m1. */
int spec_hostlist(struct gpuq_arena *a, const char *text, struct gpuq_strlist *out,
		  struct gpuq_err *err);

/* Slurm's --constraint: words, "key=value", "!word", '&', '|', parentheses; a word
 * asks that a node has a label of that name. */
int spec_constraint_parse(struct gpuq_arena *a, const char *text, struct gpuq_term **terms,
			  size_t *n, struct gpuq_err *err);

/* group's required terms := required AND (one of terms). */
int spec_require(struct gpuq_arena *a, struct gpuq_group *g, const struct gpuq_term *terms,
		 size_t n, struct gpuq_err *err);

/* Kubernetes' nodeSelector map and affinity in Kubernetes' own words, shared by
 * manifests and the job file (which spells keys with underscores). */
int spec_read_selector(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g);
int spec_read_node_affinity(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g);
extern const char *const spec_op_names[]; /* "In", ... by enum gpuq_op */
extern const struct gpuq_schema spec_require_schema;

/* gpuq_spec_read without a name for jobs that have none. */
int spec_tree_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *out);

/* ---- countable resources (spec_amounts.c) ---- */

/* Check that an amount of huge pages is a whole number of them; other resources pass. */
int spec_pages_check(struct gpuq_reader *r, const struct gpuq_val *at, const char *name,
		     int64_t bytes);
/* Convert devices that are named to thousandths of devices. */
int spec_devices_of(const struct gpuq_amount *named, int64_t *milli, struct gpuq_err *err);

/* Read the requests of a pod template for resources that no dialect reads; after the dialects. */
int spec_resources_of_pod(struct gpuq_reader *r, const struct gpuq_val *spec, struct gpuq_group *g);

/* Return the request of a pod for one resource, all containers together (spec_devices.c). */
enum spec_unit { SPEC_COUNT, SPEC_CPU, SPEC_BYTES };
int spec_pod_request(struct gpuq_reader *r, const struct gpuq_val *spec, const char *res,
		     enum spec_unit unit, int64_t *out);

/* ---- checks (spec_check.c) ---- */

/* Say why a label (values = true) or an annotation is refused; NULL: it is not. words: kinds of words of other
 * systems that are refused. */
const char *spec_label_fault(const char *key, const char *val, bool values, unsigned words);
/* Labels (values = true) or annotations m of field, a member of the map at. */
int spec_check_labels(struct gpuq_reader *r, const struct gpuq_val *at, const char *field,
		      const struct gpuq_strmap *m, bool values, unsigned words);
int spec_check_env(struct gpuq_reader *r, const struct gpuq_val *at, const struct gpuq_strmap *env);
/* A path or a program's name is one line without control characters; NULL is none. */
int spec_line_ok(const char *text, struct gpuq_err *err);
/* Defaults that depend on other fields: once everything has been said. */
void spec_group_settle(struct gpuq_group *g);

/* The rules across fields. v is for the place and may be NULL. */
int spec_check_group(struct gpuq_reader *r, const struct gpuq_val *v, void *group);
int spec_check(struct gpuq_reader *r, const struct gpuq_val *v, void *spec);
/* Rules over groups and job together. */
int spec_check_whole(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *spec);
/* Read the requests of the pod: gpus_milli, gpu_memory_bytes, gpu_cores, mig, cpu_milli,
 * memory_bytes of g. r is at the template, meta and spec are its members. */
int spec_devices_read(struct gpuq_reader *r, const struct gpuq_val *meta,
		      const struct gpuq_val *spec, struct gpuq_group *g);

/* ---- options and scripts (spec_options.c, spec_unused.c, spec_script.c) ---- */

/* Options of a script for the submitting program, by the bits of enum gpuq_ask. */
extern const struct gpuq_spec_option spec_client_options[]; /* ends with name == NULL */

/* Options add up before they mean something: --gpus is per job, its pods may come
 * from --nodes of another line. */
struct spec_opts_state {
	struct gpuq_arena *arena;
	struct gpuq_spec *spec; /* with at least one group */
	const struct gpuq_spec_opts *opts;
	struct gpuq_buf *warnings;
	bool is_manifest; /* its own requests stand */
	bool is_script; /* what it says comes from options alone */
	bool from_file; /* a directive, not the command line */
	bool slurm; /* an #SBATCH line, or the command line of a command of Slurm's */
	bool skipped; /* the last one was unknown, and that is allowed */
	unsigned asks; /* enum gpuq_ask, or'ed */
	int level; /* counts sources: #SBATCH, #GPUQ, command line */
	int devices_level; /* the source that spoke of devices last */
	int gres_level; /* the source that spoke of --gres last */
	int mail_level; /* the source that spoke of --mail-type last */
	int64_t pods_min, pods_max; /* 0 = not given */
	int64_t gpus_job_milli, gpus_pod_milli, gpus_task_milli; /* -1 = not given */
	int64_t ntasks, ntasks_per_node, cpus_per_task; /* 0 = not given */
	int64_t ntasks_per_gpu, cpus_per_gpu; /* 0 = not given */
	int64_t mem_bytes, mem_cpu_bytes, mem_gpu_bytes; /* -1 = not given */
	int64_t cpu_milli; /* -1 = not given */
	const char *alike; /* a constraint in brackets: one of it for all nodes; NULL = none */
	bool environ_set; /* --export chose: only these go along */
	struct gpuq_strmap environ;
	const char *place; /* "train.sh:3:9: " of the option being applied, or "" */
	struct gpuq_strmap places; /* as of struct gpuq_specs */
};

void spec_opts_begin(struct spec_opts_state *st, struct gpuq_arena *a, struct gpuq_spec *spec,
		     const struct gpuq_spec_opts *opts, struct gpuq_buf *warnings);

/* Apply one option; v is NULL for one without a value. */
typedef int spec_option_fn(struct spec_opts_state *st, const char *v, struct gpuq_err *err);

/* spec_resources.c: the options about pods and what each of them has. */
spec_option_fn spec_opt_nodes, spec_opt_ntasks, spec_opt_ntasks_per_gpu, spec_opt_ntasks_per_node,
	spec_opt_cpus_per_gpu, spec_opt_cpus_per_task, spec_opt_cpus, spec_opt_gpus,
	spec_opt_gpus_per_node, spec_opt_gpus_per_task, spec_opt_gres, spec_opt_mem,
	spec_opt_mem_per_cpu, spec_opt_mem_per_gpu;

/* Shared by the functions of options: "expected X, not 'got'"; a number; a copy of a
 * text that is not empty; a warning with the option's place. */
int spec_opt_bad(struct gpuq_err *err, const char *expected, const char *got);
int spec_opt_count(const char *text, int64_t min, int64_t max, const char *what, int64_t *out,
		   struct gpuq_err *err);
int spec_opt_set_text(struct spec_opts_state *st, const char *v, const char **out,
		      struct gpuq_err *err);
void spec_opt_warn(struct spec_opts_state *st, const char *name, const char *text);

/* One option by its long name, or by its letter (a name of one byte); value NULL when
 * none was given. GPUQ_ENOENT when it is unknown; err does not name the option. */
int spec_opts_apply(struct spec_opts_state *st, const char *name, const char *value,
		    struct gpuq_err *err);
int spec_option_unknown(const char *name, struct gpuq_err *err);
/* Return the name of the only option that begins with name, as getopt_long takes it; else name. */
const char *spec_option_whole(const char *name);
const struct gpuq_spec_option *spec_option_find(const char *name);

/* The command line's options; argv may be NULL. */
int spec_opts_argv(struct spec_opts_state *st, const char *const *argv, struct gpuq_err *err);

/* Directives of a script into st, its text into the spec. */
int spec_script_read(struct spec_opts_state *st, const char *text, size_t n, struct gpuq_err *err);

/* Turn what was gathered into fields of the spec. */
int spec_opts_end(struct spec_opts_state *st, struct gpuq_err *err);

#endif
