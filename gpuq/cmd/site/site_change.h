/* site_change.h - change the site and show what that changes, or would
 *
 * Touches  the server, standard output.
 * Used by  cmd_apply.c, cmd_queues_act.c, cmd_reserve.c.
 */
#ifndef GPUQ_CMD_SITE_SITE_CHANGE_H
#define GPUQ_CMD_SITE_SITE_CHANGE_H

#include "gpuq/cli.h"

/* Call site.apply with params, to which the options --dry-run, --yes-evict and --json are
 * added. done is what is printed when it was applied, with the number of changes behind it
 * ("Applied 3 changes"); NULL: every change is printed as in a dry run. Returns the exit
 * code. */
int site_change(struct cli *c, struct gpuq_val *params, const char *done);

/* {version: 1, <list>: [member]}, as site.apply takes it. */
struct gpuq_val *site_tree(struct gpuq_arena *a, const char *list, struct gpuq_val *members);

/* Put key=value, the value written as in a site file (YAML), into map; key.sub=value puts
 * it into the map of that name. GPUQ_EINVAL with what is wrong. */
int site_put(struct gpuq_arena *a, struct gpuq_val *map, const char *text, struct gpuq_err *err);

#endif
