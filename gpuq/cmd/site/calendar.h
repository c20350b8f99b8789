/* calendar.h - reservations as a picture: the days that come, by pool
 *
 * Touches  the server, standard output, the local time zone.
 * Used by  cmd_reservations.c.
 */
#ifndef GPUQ_CMD_SITE_CALENDAR_H
#define GPUQ_CMD_SITE_CALENDAR_H

#include "gpuq/cli.h"

#define CALENDAR_DAYS 14 /* without --days */
#define CALENDAR_DAYS_MAX 366

/* Days that --days says; -1 after a message. */
int calendar_days(const struct cli *c);

/* Print the picture. Returns the exit code. */
int calendar_print(struct cli *c, int days);

#endif
