#include "config.h"

#include "gpuqd/cluster/local/shepherd/order.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { STR, INT, BOOL, LIST };

/* One row per field; both directions follow from it. */
static const struct field {
	const char *key;
	enum kind kind;
	size_t offset;
} fields[] = {
	{ "pod", STR, offsetof(struct order, pod) },
	{ "token", STR, offsetof(struct order, token) },
	{ "uid", STR, offsetof(struct order, uid) },
	{ "node", STR, offsetof(struct order, node) },
	{ "user", STR, offsetof(struct order, user) },
	{ "record", STR, offsetof(struct order, record) },
	{ "cwd", STR, offsetof(struct order, cwd) },
	{ "output", STR, offsetof(struct order, output) },
	{ "error", STR, offsetof(struct order, error) },
	{ "input", STR, offsetof(struct order, input) },
	{ "devices", STR, offsetof(struct order, devices) },
	{ "minors", STR, offsetof(struct order, minors) },
	{ "job_uid", INT, offsetof(struct order, job_uid) },
	{ "job_gid", INT, offsetof(struct order, job_gid) },
	{ "file_mask", INT, offsetof(struct order, file_mask) },
	{ "code", BOOL, offsetof(struct order, code) },
	{ "script", BOOL, offsetof(struct order, script) },
	{ "batch_only", BOOL, offsetof(struct order, batch_only) },
	{ "append", BOOL, offsetof(struct order, append) },
	{ "launch", BOOL, offsetof(struct order, launch) },
	{ "input_open", BOOL, offsetof(struct order, input_open) },
	{ "tty", BOOL, offsetof(struct order, tty) },
	{ "no_new_privs", BOOL, offsetof(struct order, no_new_privs) },
	{ "device_cgroup", BOOL, offsetof(struct order, device_cgroup) },
	{ "time_limit_us", INT, offsetof(struct order, time_limit_us) },
	{ "grace_us", INT, offsetof(struct order, grace_us) },
	{ "warn_signal", INT, offsetof(struct order, warn_signal) },
	{ "warn_lead_us", INT, offsetof(struct order, warn_lead_us) },
	{ "cpu_milli", INT, offsetof(struct order, cpu_milli) },
	{ "memory_bytes", INT, offsetof(struct order, memory_bytes) },
	{ "gpus_milli", INT, offsetof(struct order, gpus_milli) },
	{ "arg", LIST, offsetof(struct order, argv) },
	{ "env", LIST, offsetof(struct order, env) },
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static void put(struct gpuq_buf *b, const char *key, const char *value)
{
	gpuq_buf_adds(b, key);
	gpuq_buf_addc(b, '=');
	gpuq_buf_adds(b, value ? value : "");
	gpuq_buf_addc(b, '\0');
}

static void put_int(struct gpuq_buf *b, const char *key, int64_t i)
{
	gpuq_buf_printf(b, "%s=%lld", key, (long long)i);
	gpuq_buf_addc(b, '\0');
}

void order_write(const struct order *o, struct gpuq_buf *out)
{
	put(out, "gpuq-order", "1");
	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &fields[i];
		const void *at = (const char *)o + f->offset;
		const struct gpuq_strlist *list = at;

		switch (f->kind) {
		case STR:
			put(out, f->key, *(const char *const *)at);
			break;
		case INT:
			put_int(out, f->key, *(const int64_t *)at);
			break;
		case BOOL:
			put_int(out, f->key, *(const bool *)at);
			break;
		case LIST:
			for (size_t k = 0; k < list->n; k++)
				put(out, f->key, list->items[k]);
			break;
		}
	}
	put(out, "end", "1");
}

static const struct field *find(const char *key, size_t n)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (strlen(fields[i].key) == n && memcmp(fields[i].key, key, n) == 0)
			return &fields[i];
	return NULL;
}

/* The next "key=value" of text at *at; false at its end or when it is no such thing. */
static bool next(const char *text, size_t n, size_t *at, const char **key, size_t *key_len,
		 const char **value)
{
	const char *end = *at < n ? memchr(text + *at, '\0', n - *at) : NULL;
	const char *eq = end ? memchr(text + *at, '=', (size_t)(end - text) - *at) : NULL;

	if (!eq)
		return false;
	*key = text + *at;
	*key_len = (size_t)(eq - *key);
	*value = eq + 1;
	*at = (size_t)(end - text) + 1;
	return true;
}

/* Two passes over the text: count the lists, then fill everything in. */
static int parse(struct gpuq_arena *a, const char *text, size_t n, struct order *o)
{
	size_t count[N_FIELDS] = { 0 }, at = 0, key_len;
	const char *key, *value;
	bool first = true, whole = false;

	while (next(text, n, &at, &key, &key_len, &value)) {
		const struct field *f = find(key, key_len);

		if (first && (key_len != 10 || memcmp(key, "gpuq-order", 10) != 0))
			return GPUQ_ECORRUPT;
		first = false;
		whole = key_len == 3 && memcmp(key, "end", 3) == 0;
		if (f)
			count[f - fields]++;
	}
	if (!whole || at != n)
		return GPUQ_ECORRUPT;

	for (size_t i = 0; i < N_FIELDS; i++) {
		void *field = (char *)o + fields[i].offset;

		if (fields[i].kind == STR) {
			*(const char **)field = "";
		} else if (fields[i].kind == LIST) {
			struct gpuq_strlist *list = field;

			list->items = gpuq_arena_calloc(a, count[i] + 1, sizeof(*list->items));
			if (!list->items)
				return GPUQ_ENOMEM;
		}
	}
	for (at = 0; next(text, n, &at, &key, &key_len, &value);) {
		const struct field *f = find(key, key_len);
		void *field = f ? (char *)o + f->offset : NULL;
		struct gpuq_strlist *list = field;

		if (!f)
			continue;
		switch (f->kind) {
		case STR:
			*(const char **)field = value;
			break;
		case INT:
			*(int64_t *)field = strtoll(value, NULL, 10);
			break;
		case BOOL:
			*(bool *)field = *value == '1';
			break;
		case LIST:
			list->items[list->n++] = value;
			break;
		}
	}
	return o->pod[0] && o->token[0] && o->uid[0] ? 0 : GPUQ_ECORRUPT;
}

int order_read(int dirfd, struct gpuq_arena *a, struct order *out, struct gpuq_err *err)
{
	struct order o = { 0 };
	size_t have = 0;
	struct stat st;
	char *text = NULL;
	int fd, rc = 0;

	fd = openat(dirfd, "order", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return gpuq_fail(err, errno == ENOENT ? GPUQ_ENOENT : GPUQ_EIO,
				 "cannot open the order: %s", strerror(errno));
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > ORDER_BYTES_MAX) {
		rc = gpuq_fail(err, GPUQ_ECORRUPT,
			       "the order is not a file, or has the wrong size");
		goto out;
	}
	text = gpuq_arena_alloc(a, (size_t)st.st_size + 1);
	if (!text) {
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory for an order of %lld bytes",
			       (long long)st.st_size);
		goto out;
	}
	while (have < (size_t)st.st_size) {
		ssize_t k = read(fd, text + have, (size_t)st.st_size - have);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		have += (size_t)k;
	}
	rc = parse(a, text, have, &o);
	if (rc == 0)
		*out = o;
	else
		gpuq_fail(err, rc, "the order is not complete");
out:
	close(fd);
	return rc;
}
