#include "gpuqd/cluster/kube/watch/split.h"

#include <string.h>

#include "libgpuq/limits.h"

/* decode_node.c and decode_pod.c need none of these members; the first is of every kind. */
static const struct {
	size_t n;
	const char *key;
} pruned[] = {
#define X(key_)                                                                                    \
	{                                                                                          \
		sizeof(key_) - 1, key_                                                             \
	}
	X("managedFields"), X("images"),          X("env"),          X("command"),
	X("args"),          X("volumes"),         X("volumeMounts"), X("tolerations"),
	X("affinity"),      X("securityContext"),
#undef X
};

#define N_PRUNED (sizeof(pruned) / sizeof(pruned[0]))

void split_init(struct split *s, enum split_kind kind, split_fn fn, void *arg)
{
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->fn = fn;
	s->arg = arg;
}

void split_done(struct split *s)
{
	gpuq_buf_done(&s->buf);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void set_key(char key[16], const struct split *s)
{
	memcpy(key, s->last, s->n_last);
	key[s->n_last] = '\0';
}

/* Keep what was scanned of the object; beyond the limit only its end matters. */
static int take(struct split *s, const char *from, const char *to, struct gpuq_err *err)
{
	size_t n = (size_t)(to - from);

	s->taken_bytes += n;
	if (s->bad || n == 0)
		return 0;
	if (s->taken_bytes > GPUQ_KUBE_OBJECT_BYTES_MAX) {
		s->bad = true;
		s->too_big++;
		gpuq_buf_clear(&s->buf);
		return 0;
	}
	if (gpuq_buf_add(&s->buf, from, n) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for an object of the cluster");
	return 0;
}

static void begin(struct split *s, enum split_what what)
{
	s->cutting = true;
	s->bad = s->pruning = s->key_is_prune = false;
	s->what = what;
	s->base = s->depth;
	s->taken_bytes = 0;
	s->n_last = sizeof(s->last);
	gpuq_buf_clear(&s->buf);
}

/* [from, to) is the rest of the object. An object that lies within one chunk is
 * handed on where it is. */
static int finish(struct split *s, const char *from, const char *to, struct gpuq_err *err)
{
	bool whole = s->buf.len == 0 && !s->bad && s->taken_bytes == 0;
	int rc;

	s->cutting = false;
	if (whole && (size_t)(to - from) <= GPUQ_KUBE_OBJECT_BYTES_MAX) {
		s->objects++;
		if (!s->fn(s->arg, s->what, from, (size_t)(to - from)))
			s->stopped = true;
	} else {
		rc = take(s, from, to, err);
		if (rc != 0)
			return rc;
		if (!s->bad) {
			s->objects++;
			if (!s->fn(s->arg, s->what, s->buf.data, s->buf.len))
				s->stopped = true;
		}
	}
	/* One huge object must not hold its memory for the life of a watch. */
	if (s->buf.room > (256u << 10))
		gpuq_buf_done(&s->buf);
	else
		gpuq_buf_clear(&s->buf);
	if (s->stopped)
		return gpuq_fail(err, GPUQ_ECANCELED, "the reader wants no more");
	return 0;
}

/* A value begins with c at depth s->depth, outside any object being cut. */
static int value_begins(struct split *s, char c, struct gpuq_err *err)
{
	if (s->kind == SPLIT_STREAM) {
		if (c == '{') {
			begin(s, SPLIT_OBJECT);
			return 0;
		}
		s->garbage++;
		s->resync = true;
		return 0;
	}
	if (s->depth == 0) {
		if (c != '{' || s->list_done)
			return gpuq_fail(err, GPUQ_EPROTO, "the reply is not a list of the API");
		s->list_open = true;
	} else if (s->depth == 1) {
		if (c == '{' && strcmp(s->key, "metadata") == 0)
			begin(s, SPLIT_META);
		else if (c == '[' && strcmp(s->key, "items") == 0)
			s->in_items = true;
	} else if (s->depth == 2 && s->in_items) {
		if (c == '{')
			begin(s, SPLIT_OBJECT);
		else
			s->garbage++;
	}
	return 0;
}

/* Keep what a string begins with: it may be a key. */
static void note(struct split *s, const char *from, const char *to)
{
	for (; from < to && s->n_last < sizeof(s->last); from++)
		s->last[s->n_last++] = *from;
}

/* Inside a string: move p to its end. A raw newline cannot stand in a JSON string;
 * in a stream it is the end of a broken object, and reading goes on behind it. */
static const char *string_rest(struct split *s, const char *p, const char *end)
{
	static const bool stops[256] = { ['"'] = true, ['\\'] = true, ['\n'] = true };

	while (p < end) {
		const char *const from = p;

		if (s->escaped)
			p++;
		s->escaped = false;
		for (;; p += 2) {
			while (p < end && !stops[(unsigned char)*p])
				p++;
			s->escaped = p + 1 == end && *p == '\\';
			if (s->escaped)
				p++;
			if (p == end || *p != '\\')
				break;
		}
		note(s, from, p);
		if (p == end)
			return p;
		if (*p == '"') {
			s->in_string = false;
			return p + 1;
		}
		if (s->kind == SPLIT_STREAM) {
			s->in_string = s->cutting = s->pruning = false;
			s->depth = 0;
			s->garbage++;
			gpuq_buf_clear(&s->buf);
			return p + 1;
		}
		note(s, p, p + 1);
		p++;
	}
	return p;
}

static void colon(struct split *s)
{
	bool short_key = s->n_last < sizeof(s->last);

	if (s->cutting) {
		for (size_t i = 0; i < (s->whole ? 1 : N_PRUNED) && short_key; i++)
			if (pruned[i].n == s->n_last &&
			    memcmp(pruned[i].key, s->last, s->n_last) == 0)
				s->key_is_prune = true;
	} else if (s->depth == 1) {
		s->key[0] = '\0';
		if (short_key)
			set_key(s->key, s);
	}
}

/* An opening bracket at p; seg is where the bytes not yet taken begin. */
static int open_bracket(struct split *s, const char *p, const char **seg, struct gpuq_err *err)
{
	int rc;

	if (!s->cutting) {
		rc = value_begins(s, *p, err);
		if (rc != 0)
			return rc;
		if (s->cutting)
			*seg = p;
	} else if (s->key_is_prune && !s->pruning) {
		rc = take(s, *seg, p, err);
		if (rc == 0)
			rc = take(s, "0", &"0"[1], err);
		if (rc != 0)
			return rc;
		s->pruning = true;
		s->prune_depth = s->depth;
	}
	s->key_is_prune = false;
	s->depth++;
	if (s->cutting && !s->pruning && s->depth - s->base > GPUQ_KUBE_DEPTH_MAX && !s->bad) {
		s->bad = true;
		s->too_deep++;
		gpuq_buf_clear(&s->buf);
	}
	return 0;
}

static int close_bracket(struct split *s, const char *p, const char **seg, struct gpuq_err *err)
{
	if (s->depth == 0) {
		if (s->kind == SPLIT_LIST)
			return gpuq_fail(err, GPUQ_EPROTO, "the reply is not JSON");
		s->garbage++;
		s->resync = true;
		return 0;
	}
	s->depth--;
	if (s->pruning && s->depth == s->prune_depth) {
		s->pruning = false;
		*seg = p + 1;
	} else if (s->cutting && s->depth == s->base) {
		return finish(s, *seg, p + 1, err);
	} else if (s->kind == SPLIT_LIST && !s->cutting) {
		if (s->depth == 1)
			s->in_items = false;
		else if (s->depth == 0)
			s->list_done = true;
	}
	return 0;
}

int split_feed(struct split *s, const char *bytes, size_t n, struct gpuq_err *err)
{
	const char *p = bytes, *end = bytes + n;
	const char *seg = bytes; /* of an object being cut: first byte not yet taken */
	int rc = 0;

	if (s->stopped)
		return gpuq_fail(err, GPUQ_ECANCELED, "the reader wants no more");
	while (p < end && rc == 0) {
		char c = *p;

		if (s->in_string) {
			p = string_rest(s, p, end);
			continue;
		}
		if (s->resync) {
			if (c == '\n')
				s->resync = false;
			p++;
			continue;
		}
		switch (c) {
		case '"':
			s->in_string = true;
			s->key_is_prune = false;
			s->n_last = 0;
			if (!s->cutting && s->depth == 0)
				rc = value_begins(s, c, err);
			if (s->resync)
				s->in_string = false;
			break;
		case ':':
			colon(s);
			break;
		case '{':
		case '[':
			rc = open_bracket(s, p, &seg, err);
			if (s->resync)
				s->depth = 0;
			break;
		case '}':
		case ']':
			rc = close_bracket(s, p, &seg, err);
			break;
		default:
			if (is_space(c))
				break;
			s->key_is_prune = false;
			if (!s->cutting && s->depth == 0)
				rc = value_begins(s, c, err);
		}
		p++;
	}
	if (rc == 0 && s->cutting && !s->pruning)
		rc = take(s, seg, end, err);
	return rc;
}

int split_end(const struct split *s, struct gpuq_err *err)
{
	if (s->kind == SPLIT_LIST && !s->list_done)
		return gpuq_fail(err, GPUQ_EPROTO, "the list ended before its end");
	if (s->cutting || s->in_string)
		return gpuq_fail(err, GPUQ_EPROTO, "the stream ended inside an object");
	return 0;
}
