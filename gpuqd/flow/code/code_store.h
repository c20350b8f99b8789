/* code_store.h - larger archives of --code in an object store or on a volume, where pods get them
 *
 * Owns     the objects PREFIX/code-NAME, and beside the archive of that name in STATE/code a mark, NAME.s3 or NAME.dir,
 *          that is there from before the object until after it.
 * Touches  these marks; the store through flow/copies/target.h and code_dir.h; a thread.
 * Used by  files.c; code_keep.c has it look for what may go.
 *
 * A pod gets an address that is signed for a while, never the key; or of a volume the one archive, to read.
 */
#ifndef GPUQD_FLOW_CODE_CODE_STORE_H
#define GPUQD_FLOW_CODE_CODE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/flow/copies/plan.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

struct code_store;
struct codes_outside;
struct gpuq_volume;
struct loop;

/* `code_store` of gpuqd.yaml. */
struct code_store_plan {
	const char *to; /* https://HOST/BUCKET/PREFIX, or a directory; NULL = there is none */
	struct backup_s3 s3; /* of an address */
	struct gpuq_volume *volume; /* of a directory: how pods see it; path NULL */
	int64_t timeout_us; /* of a transfer */
	int64_t valid_us; /* how long a pod may take until it fetches */
};

/* state: the directory that has code/. Texts of the plan are not copied. GPUQ_EINVAL: its address or credentials. */
int code_store_new(struct loop *l, const struct code_store_plan *p, const char *state,
		   struct code_store **out, struct gpuq_err *err);
void code_store_stop(struct code_store *s); /* transfers under way fail soon; NULL is fine */
void code_store_free(struct code_store *s); /* NULL is fine */
void code_store_outside(struct code_store *s, struct codes_outside *out);

/* Get the address of an archive that is there. GPUQ_ENOENT: it is not in the store; GPUQ_EINVAL: no credentials. */
int code_store_url(struct code_store *s, const char *user, const char *digest, struct gpuq_arena *a,
		   const char **url, struct gpuq_err *err);
/* True if pods get archives of a volume, not by an address. */
bool code_store_is_volume(const struct code_store *s);
/* Get the part of the volume that has an archive. GPUQ_ENOENT as above. */
int code_store_volume(const struct code_store *s, const char *user, const char *digest,
		      struct gpuq_arena *a, struct gpuq_volume **out, struct gpuq_err *err);
/* Return the certificates that a client needs for it, PEM; NULL = those that it has. */
const char *code_store_ca(const struct code_store *s);

/* Remove the objects whose archives are gone, beside the loop. */
void code_store_sweep(struct code_store *s);

#endif
