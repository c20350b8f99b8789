/* calendar.h - chart of the reservations of the coming days, by pool
 *
 * Touches  the server, standard output, the local time zone.
 * Used by  cmd_reservations.c.
 */
#ifndef GPUQ_CMD_SITE_CALENDAR_H
#define GPUQ_CMD_SITE_CALENDAR_H

#include "gpuq/cli.h"

#define CALENDAR_DAYS 14 /* without --days */
#define CALENDAR_DAYS_MAX 366

/* Return the number of days (--days); -1 after a message. */
int calendar_days(const struct cli *c);

/* Print the chart. Returns the exit code. */
int calendar_print(struct cli *c, int days);

#endif
