/* upgrade.h - databases of older schemas, and copies that become one
 *
 * Touches  the state directory.
 * Used by  store.c, daemon.c.
 */
#ifndef GPUQD_STORE_UPGRADE_H
#define GPUQD_STORE_UPGRADE_H

#include "gpuqd/store/store.h"

struct check;

/* Make file, a copy of a database of this or an older schema, the database of dir, which has
 * none (GPUQ_ECONFLICT): it is checked, converted (o->upgrade), changed by amend (NULL: not), flagged as a copy,
 * synced and then put in place by a renaming. store_open finds it with store_is_copy true. A negative
 * answer of amend leaves all as it was. */
int store_restore(const char *dir, const char *file, const struct store_opts *o,
		  int (*amend)(void *arg, const char *path, struct gpuq_err *err), void *arg,
		  struct gpuq_err *err);
/* Make dir, if need be; GPUQ_ECONFLICT if it has a database. */
int store_restore_place(const char *dir, struct gpuq_err *err);

/* Write what lies in the file of old (of an older schema, or flag: any) to dir/data.mdb.new,
 * synced. */
int store_convert(const char *dir, struct check *old, const struct store_opts *o, bool flag,
		  struct gpuq_err *err);
/* Convert the database of dir and put the new one in its place. */
int store_upgrade(const char *dir, struct check *old, const struct store_opts *o,
		  struct gpuq_err *err);

#endif
