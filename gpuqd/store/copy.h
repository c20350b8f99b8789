/* copy.h - copies of a store, and what it takes
 *
 * Touches  the database, which it does not change; files of no name beside it.
 * Used by  flow (backups, figures); upgrade.c.
 */
#ifndef GPUQD_STORE_COPY_H
#define GPUQD_STORE_COPY_H

#include "gpuqd/store/store.h"

/* Sizes of the database. */
struct store_stats {
	uint64_t bytes; /* of the file that are in use */
	uint64_t map_bytes; /* that it may grow to */
	uint64_t free_bytes,
		disk_bytes; /* of its filesystem: free for other users than root; in total */
	uint64_t n_records[N_TABLES];
};
int store_stats(struct store *st, struct store_stats *out, struct gpuq_err *err);

/* A file of no name beside the database, for a copy of it; its descriptor, or GPUQ_EIO,
 * GPUQ_ESTORAGE (there is no room for one). */
int store_scratch(struct store *st, struct gpuq_err *err);

/* A consistent copy of what is stored, without gaps, into fd (a file, open for reading and
 * writing); it is flagged as a copy inside, and *id is its position. From any thread; takes long. As
 * data.mdb of an empty state directory it is what was stored. */
int store_copy(struct store *st, int fd, struct store_identity *id, struct gpuq_err *err);

/* Flag the database in the file of fd, open for reading and writing, as a copy. id (NULL is fine): its
 * position. */
int store_flag_copy(int fd, struct store_identity *id, struct gpuq_err *err);

#endif
