#include "gpuqd/flow/notify/outbox_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libgpuq/units.h"
#include "libgpuq/utf8.h"

#define LINE_BYTES_MAX 400 /* of a value in a mail */
#define ENCODED_BYTES_MAX 57u /* between =?UTF-8?Q? and ?=: a line of 78 */

void outbox_id(const char *cluster_id, uint64_t number, char *id)
{
	snprintf(id, 64, "%s-%" PRIu64, cluster_id, number);
}

/* ---- JSON ---- */

static bool is_instant(const char *key)
{
	const size_t n = strlen(key);

	return strcmp(key, "time") == 0 || (n > 5 && strcmp(key + n - 5, "_time") == 0);
}

/* Return a copy with instants as text, as everywhere in JSON. */
static struct gpuq_val *for_people(struct gpuq_arena *a, const struct gpuq_val *map)
{
	struct gpuq_val *out = gpuq_map(a);
	char text[32];

	for (uint32_t i = 0; i < map->n; i++) {
		const struct gpuq_pair *p = &map->pairs[i];

		if (p->val->type == GPUQ_INT && is_instant(p->key)) {
			gpuq_instant_print(p->val->i, text, sizeof(text));
			gpuq_put(a, out, p->key, gpuq_str(a, text));
		} else {
			gpuq_put(a, out, p->key, gpuq_val_copy(a, p->val));
		}
	}
	return out;
}

void outbox_json(const struct gpuq_val *msg, const char *id, const char *cluster_id,
		 struct gpuq_buf *out)
{
	static const char *const kept[] = { "time", "event", "cause" };
	static const char *const refused[] = { "object", "message" };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&a), *top, *job = gpuq_get(msg, "job");

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct gpuq_val *one = gpuq_get(msg, kept[i]);

		gpuq_put(&a, v, kept[i], one ? gpuq_val_copy(&a, one) : gpuq_null(&a));
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (gpuq_get(msg, refused[i]))
			gpuq_put(&a, v, refused[i], gpuq_val_copy(&a, gpuq_get(msg, refused[i])));
	top = for_people(&a, v);
	v = gpuq_map(&a);
	gpuq_put(&a, v, "version", gpuq_int(&a, 1));
	gpuq_put(&a, v, "id", gpuq_str(&a, id));
	gpuq_put(&a, v, "cluster", gpuq_str(&a, cluster_id));
	for (uint32_t i = 0; top && i < top->n; i++)
		gpuq_put(&a, v, top->pairs[i].key, top->pairs[i].val);
	gpuq_put(&a, v, "job", job && job->type == GPUQ_MAP ? for_people(&a, job) : gpuq_null(&a));
	if (gpuq_val_ok(v))
		gpuq_json_write(out, v, 0);
	else
		out->failed = true;
	gpuq_arena_done(&a);
}

/* ---- mail ---- */

/* Append one line of text: what is none, acts on a terminal or turns text becomes '?'. */
static void clean(struct gpuq_buf *out, const char *s)
{
	uint32_t code;

	for (size_t left = strnlen(s, LINE_BYTES_MAX); left > 0;) {
		const size_t k = gpuq_utf8_next(s, left, &code), step = k ? k : 1;

		if (k && !gpuq_utf8_acts(code))
			gpuq_buf_add(out, s, k);
		else
			gpuq_buf_addc(out, '?');
		s += step;
		left -= step;
	}
}

/* Append text as encoded words of RFC 2047, each of whole characters and at most 75 bytes. */
static void encoded_words(struct gpuq_buf *out, const char *s)
{
	size_t line = 0;

	for (size_t left = strlen(s), k; left > 0; s += k, left -= k) {
		k = gpuq_utf8_next(s, left, NULL);
		k = k ? k : 1;
		if (line == 0 || line + 3 * k > ENCODED_BYTES_MAX) {
			gpuq_buf_adds(out, line ? "?=\n =?UTF-8?Q?" : "=?UTF-8?Q?");
			line = 0;
		}
		for (size_t i = 0; i < k; i++)
			gpuq_buf_printf(out, "=%02X", (unsigned char)s[i]);
		line += 3 * k;
	}
	gpuq_buf_adds(out, line ? "?=" : "");
}

static void header(struct gpuq_buf *out, const char *name, const char *value)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	bool ascii = true;

	clean(&text, value);
	for (const char *s = gpuq_buf_str(&text); *s; s++)
		ascii = ascii && (unsigned char)*s < 0x80;
	gpuq_buf_printf(out, "%s: ", name);
	if (ascii)
		gpuq_buf_adds(out, gpuq_buf_str(&text));
	else
		encoded_words(out, gpuq_buf_str(&text));
	gpuq_buf_addc(out, '\n');
	gpuq_buf_done(&text);
}

static void date(struct gpuq_buf *out, int64_t at_us)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	const time_t t = at_us / GPUQ_US_PER_S;
	struct tm tm;

	if (gmtime_r(&t, &tm)) /* not strftime: the locale's words are not RFC 5322's */
		gpuq_buf_printf(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\n", days[tm.tm_wday],
				tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour,
				tm.tm_min, tm.tm_sec);
}

static void print_val(struct gpuq_buf *out, const char *key, const struct gpuq_val *v)
{
	char text[32];

	if (v->type == GPUQ_STR) {
		clean(out, v->s);
	} else if (v->type == GPUQ_INT && is_instant(key)) {
		gpuq_instant_print(v->i, text, sizeof(text));
		gpuq_buf_adds(out, text);
	} else if (v->type == GPUQ_LIST) {
		for (uint32_t i = 0; i < v->n; i++) {
			gpuq_buf_adds(out, i ? ", " : "");
			print_val(out, "", v->items[i]);
		}
	} else {
		gpuq_json_write(out, v, 0); /* numbers */
	}
}

static void row(struct gpuq_buf *out, const char *label, const char *key, const struct gpuq_val *in)
{
	const struct gpuq_val *v = gpuq_get(in, key);

	if (!v || v->type == GPUQ_NULL || (v->type == GPUQ_LIST && v->n == 0))
		return;
	gpuq_buf_printf(out, "%-10s ", label);
	print_val(out, key, v);
	gpuq_buf_addc(out, '\n');
}

/* Append "gpuq: job 17_3 (train) FAILED, exit code 1"; if the job has not ended, what happened to
 * it. */
static void subject(struct gpuq_buf *out, const struct gpuq_val *msg, const struct gpuq_val *job)
{
	static const struct {
		const char *event, *text;
	} words[] = { { "begin", "has started" },
		      { "requeue", "was requeued" },
		      { "preempt", "was evicted and is pending again" },
		      { "invalid_depend", "has a dependency that can no longer be met" },
		      { "provisioned", "has got the nodes that were requested for it" },
		      { "provision_failed", "has not got nodes: its request failed" },
		      { "refused", "is refused by the cluster" },
		      { "time_90", "has used 90% of its time" },
		      { "time_80", "has used 80% of its time" },
		      { "time_50", "has used 50% of its time" } };
	const char *event = gpuq_get_str(msg, "event", "");
	const int64_t index = gpuq_get_int(job, "array_index", -1);
	const int64_t code = gpuq_get_int(job, "exit_code", -1);
	const char *what = NULL;

	gpuq_buf_printf(out, "gpuq: job %" PRId64, gpuq_get_int(job, "id", 0));
	if (index >= 0)
		gpuq_buf_printf(out, "_%" PRId64, index);
	gpuq_buf_adds(out, " (");
	clean(out, gpuq_get_str(job, "name", ""));
	gpuq_buf_adds(out, ") ");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(event, words[i].event) == 0)
			what = words[i].text;
	clean(out, what ? what : gpuq_get_str(job, "state", ""));
	if (!what && code >= 0)
		gpuq_buf_printf(out, ", exit code %" PRId64, code);
}

void outbox_mail(const struct gpuq_val *msg, const char *id, const char *cluster_id,
		 const char *from, struct gpuq_buf *out)
{
	static const struct {
		const char *label, *key;
	} rows[] = {
		{ "Name:", "name" },
		{ "User:", "user" },
		{ "Queue:", "queue" },
		{ "State:", "state" },
		{ "Exit code:", "exit_code" },
		{ "Message:", "message" },
		{ "Submitted:", "submit_time" },
		{ "Started:", "start_time" },
		{ "Ended:", "end_time" },
		{ "Attempt:", "attempt" },
		{ "Flavor:", "flavor" },
		{ "GPUs:", "gpus" },
		{ "Nodes:", "nodes" },
	};
	const struct gpuq_val *job = gpuq_get(msg, "job");
	const char *at = strchr(from, '@');
	struct gpuq_buf text = GPUQ_BUF_INIT;

	header(out, "To", gpuq_get_str(msg, "address", ""));
	header(out, "From", from);
	subject(&text, msg, job);
	header(out, "Subject", gpuq_buf_str(&text));
	date(out, gpuq_get_int(msg, "time", 0));
	gpuq_buf_printf(out, "Message-ID: <gpuq-%s@%s>\n", id, at ? at + 1 : "gpuq");
	header(out, "Auto-Submitted", "auto-generated");
	header(out, "X-Gpuq-Cluster", cluster_id);
	header(out, "MIME-Version", "1.0");
	header(out, "Content-Type", "text/plain; charset=utf-8");
	header(out, "Content-Transfer-Encoding", "8bit");
	gpuq_buf_addc(out, '\n');
	gpuq_buf_adds(out, gpuq_buf_str(&text) + strlen("gpuq: "));
	gpuq_buf_adds(out, ".\n\n");
	row(out, "Cause:", "cause", msg);
	row(out, "Object:", "object", msg);
	row(out, "Message:", "message", msg);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		row(out, rows[i].label, rows[i].key, job);
	gpuq_buf_done(&text);
}
