#include "gpuqd/state/record/history_index.h"

#include <string.h>

#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/view/view.h"
#include "libgpuq/buf.h"
#include "libgpuq/wire/mp.h"

/* Maximum length of a word in a key. The entries of longer words share a prefix; a reader compares
 * with the record. */
#define WORD_BYTES_MAX (CHANGE_KEY_BYTES_MAX - PAST_TAIL_BYTES - 2)

size_t history_prefix(unsigned char *out, enum past_by by, const char *word)
{
	size_t n = strlen(word);

	if (n > WORD_BYTES_MAX)
		n = WORD_BYTES_MAX;
	out[0] = (unsigned char)by;
	memcpy(out + 1, word, n);
	out[n + 1] = '\0';
	return n + 2;
}

size_t history_key(unsigned char *out, enum past_by by, const char *word, int64_t end_us,
		   struct job_key job)
{
	const uint64_t end = end_us > 0 ? (uint64_t)end_us : 0;
	size_t n = history_prefix(out, by, word);

	n += change_key_u32(out + n, (uint32_t)(end >> 32));
	n += change_key_u32(out + n, (uint32_t)end);
	return n + change_key_job(out + n, job.id, job.index);
}

void history_key_before(unsigned char *key, size_t n)
{
	while (n > 0 && key[--n]-- == 0)
		; /* borrow */
}

bool history_key_read(const unsigned char *key, size_t n, int64_t *end_us, struct job_key *job)
{
	const unsigned char *p;
	uint64_t end = 0;
	int64_t index;

	if (n < PAST_TAIL_BYTES + 2)
		return false;
	p = key + n - PAST_TAIL_BYTES;
	for (int i = 0; i < 8; i++)
		end = end << 8 | p[i];
	change_key_job_read(p + 8, 8, &job->id, &index);
	job->index = (int32_t)index;
	*end_us = (int64_t)end;
	return true;
}

size_t history_record_key(unsigned char *out, struct job_key job)
{
	return change_key_cluster(out, change_key_job(out, job.id, job.index), CLUSTER_DEFAULT);
}

struct job_key history_key_of_job(const struct gpuq_val *job)
{
	return (struct job_key){ (uint32_t)gpuq_get_int(job, "id", 0),
				 (int32_t)gpuq_get_int(job, "array_index", -1) };
}

/* Put or remove an ended job in each order by which history can be read: by end, and by user,
 * queue, name and state before that. */
static void entries(struct batch *out, const struct gpuq_val *job, const void *val)
{
	static const struct {
		enum past_by by;
		const char *word;
	} rows[PAST_ENTRIES] = { { PAST_BY_END, NULL },
				 { PAST_BY_USER, "user" },
				 { PAST_BY_QUEUE, "queue" },
				 { PAST_BY_NAME, "name" },
				 { PAST_BY_STATE, "state" } };
	const int64_t end_us = gpuq_get_int(job, "end_time", 0);
	const struct job_key jk = history_key_of_job(job);
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	for (size_t i = 0; i < PAST_ENTRIES; i++) {
		const char *word = rows[i].word ? gpuq_get_str(job, rows[i].word, "") : "";

		change_batch_put(out, TABLE_PAST, key,
				 history_key(key, rows[i].by, word, end_us, jk), val, 0);
	}
}

void history_index_entry(struct batch *out, const struct gpuq_val *job)
{
	entries(out, job, "");
}

/* Write the entry by which the element with this number is found, or remove it unless there. */
static void entry_of_number(struct batch *out, const struct gpuq_val *job, bool there)
{
	const int64_t number = gpuq_get_int(job, "element_id", 0);
	const struct job_key jk = history_key_of_job(job);
	unsigned char key[CHANGE_KEY_BYTES_MAX], val[CHANGE_KEY_BYTES_MAX];

	if (number > 0 && number <= UINT32_MAX)
		change_batch_put(out, TABLE_ELEMENT, key, change_key_u32(key, (uint32_t)number),
				 there ? val : NULL,
				 there ? change_key_job(val, jk.id, jk.index) : 0);
}

void history_forget(struct batch *out, const struct gpuq_val *job)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	const struct job_key jk = history_key_of_job(job);

	entries(out, job, NULL);
	entry_of_number(out, job, false);
	change_batch_put(out, TABLE_HISTORY, key, history_record_key(key, jk), NULL, 0);
	joblog_forget(out, jk, (uint32_t)gpuq_get_int(job, "n_log", 0));
	/* An array's elements share its spec; the array ends after all of them. */
	if (jk.index < 0)
		change_batch_put(out, TABLE_SPEC, key, change_key_u32(key, jk.id), NULL, 0);
}

void history_record(struct model *m, const struct job *j, struct batch *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val *v = view_job(&mem, m, j, j->life->end_us);

	gpuq_put(&mem, v, "uid", gpuq_int(&mem, j->wish->uid));
	gpuq_put(&mem, v, "n_log", gpuq_int(&mem, j->n_log));
	if (v) {
		gpuq_mp_write(&b, v);
		history_index_entry(out, v);
		entry_of_number(out, v, true);
	}
	if (!v || b.failed)
		out->failed = true;
	else
		change_batch_put(out, TABLE_HISTORY, key, history_record_key(key, j->key), b.data,
				 b.len);
	gpuq_buf_done(&b);
	gpuq_arena_done(&mem);
}
