/* log.h - structured log lines on standard error
 *
 * Owns     the level. Touches stderr, never blocks on it: a line that would block is
 *          dropped and counted.
 * Used by  rpc, flow, cluster, store, daemon. A function either logs or returns an
 *          error, not both; the core never logs.
 *
 * A line is an event name and key=value pairs:
 *   log_info("job.submitted", "job=%u user=%s gpus=%d", id, LOGS(user), gpus);
 * Strings that came from outside go through LOGS(), which quotes, escapes and cuts.
 * With the journal on stderr ($JOURNAL_STREAM) lines carry <N>, else a time stamp.
 */
#ifndef GPUQD_BASE_LOG_H
#define GPUQD_BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_L_ERR = 3, LOG_L_WARN = 4, LOG_L_NOTICE = 5, LOG_L_INFO = 6, LOG_L_DEBUG = 7 };

void log_init(enum log_level least); /* call once, before threads */
void log_set_level(enum log_level least);
int log_level_parse(const char *word); /* "info" -> LOG_L_INFO; -1 unknown */
uint64_t log_dropped(void);

void log_line(enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* s quoted and escaped when it needs it, at most 256 bytes of it. Valid until eight
 * further calls in the same thread. NULL gives "-". */
const char *log_str(const char *s);

#define LOGS(s) log_str(s)
#define log_err(...) log_line(LOG_L_ERR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_L_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_L_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_L_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_L_DEBUG, __VA_ARGS__)

#endif
