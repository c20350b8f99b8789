#include "gpuqd/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/base/clock.h"
#include "libgpuq/limits.h"

static _Atomic int least_level = LOG_L_INFO;
static bool journal;
static _Atomic uint64_t dropped;

static const struct {
	const char *word;
	enum log_level level;
} words[] = {
	{ "err", LOG_L_ERR },      { "error", LOG_L_ERR },     { "warn", LOG_L_WARN },
	{ "warning", LOG_L_WARN }, { "notice", LOG_L_NOTICE }, { "info", LOG_L_INFO },
	{ "debug", LOG_L_DEBUG },
};

void log_init(enum log_level least)
{
	least_level = least;
	journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_set_level(enum log_level least)
{
	least_level = least;
}

int log_level_parse(const char *word)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(word, words[i].word) == 0)
			return words[i].level;
	return -1;
}

uint64_t log_dropped(void)
{
	return dropped;
}

static const char *level_word(enum log_level level)
{
	static const char *const names[] = { "err", "warn", "notice", "info", "debug" };

	return names[level - LOG_L_ERR];
}

/* The descriptor may be shared with other programs, so its flags are not ours to
 * change; asking poll first keeps a full pipe from holding the event loop. */
static void emit(const char *line, size_t n)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) &&
	    write(STDERR_FILENO, line, n) == (ssize_t)n)
		return;
	dropped++;
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char line[GPUQ_LOG_LINE_BYTES_MAX];
	size_t room = sizeof(line) - 1, n;
	int64_t now_us;
	time_t now_s;
	struct tm tm;
	va_list ap;
	int k;

	if ((int)level > least_level)
		return;
	if (journal) {
		k = snprintf(line, room, "<%d>%s ", level, event);
	} else {
		now_us = clock_us(CLOCK_REALTIME);
		now_s = now_us / 1000000;
		gmtime_r(&now_s, &tm);
		k = snprintf(line, room, "%04d-%02d-%02dT%02d:%02d:%02d.%03" PRId64 "Z %s %s ",
			     tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
			     tm.tm_sec, now_us / 1000 % 1000, level_word(level), event);
	}
	n = k < 0 ? 0 : (size_t)k;
	va_start(ap, fmt);
	k = vsnprintf(line + n, room - n, fmt, ap);
	va_end(ap);
	if (k > 0)
		n += (size_t)k < room - n ? (size_t)k : room - n - 1;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	emit(line, n);
}

const char *log_str(const char *s)
{
	static _Thread_local char ring[8][288];
	static _Thread_local unsigned at;
	char *out = ring[at++ % 8];
	size_t n = 0;
	bool quote;

	if (!s)
		return "-";
	quote = *s == '\0' || strpbrk(s, " \"=\\") != NULL;
	for (const char *p = s; *p && !quote; p++)
		quote = (unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f;
	if (quote)
		out[n++] = '"';
	for (const char *p = s; *p && n < 256; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c < 0x20 || c >= 0x7f) {
			n += (size_t)snprintf(out + n, 8, "\\x%02x", c);
		} else {
			out[n++] = (char)c;
		}
	}
	if (quote)
		out[n++] = '"';
	out[n] = '\0';
	return out;
}
