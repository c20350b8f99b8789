/* check.h - verify that a database file holds what was stored
 *
 * Owns     the walk through all pages, and the thread that does it beside a start.
 * Touches  the file, by pread(2) only.
 * Used by  store/.
 *
 * Pages, records, counts and digests of each table are checked once, the tables that a start
 * loads first. Readers of a table wait until it was checked, the first transaction until all
 * were, the list of free pages included: so no reply comes from damaged pages and none is
 * overwritten. LMDB then writes on top of checked pages.
 */
#ifndef GPUQD_STORE_CHECK_H
#define GPUQD_STORE_CHECK_H

#include "gpuqd/store/pages.h"
#include "gpuqd/store/meta.h"

struct check;

/* Open the file, check its meta pages, its list of tables and META. Returns 0; GPUQ_ENOENT (it
 * is not there, empty or was never committed to), GPUQ_ECORRUPT, GPUQ_EVERSION (a newer
 * schema), GPUQ_EIO, GPUQ_EPERM. */
int check_open(const char *path, struct check **out, struct gpuq_err *err);
/* Ends the thread. NULL is fine. */
void check_close(struct check *c);

unsigned check_schema(const struct check *c);
const struct store_meta *check_state(const struct check *c); /* of schema 2 */
struct pages *check_pages(struct check *c);
const struct pages_tree *check_tree(const struct check *c, enum table t); /* NULL: it has none */
int check_fd(const struct check *c);

/* Check all on a thread of its own; on_bad is called there. */
int check_start(struct check *c, store_damaged_fn on_bad, struct gpuq_err *err);
/* Wait until a table was checked; N_TABLES: until all is. Without a thread it is done now. */
int check_wait(struct check *c, enum table t, struct gpuq_err *err);
/* True if a table was checked, or all is over: check_wait() would not wait. Otherwise it is next. */
bool check_is_done(struct check *c, enum table t);
/* Records of all tables; after all was checked. */
uint64_t check_records(const struct check *c);

#endif
