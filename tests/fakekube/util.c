#include "util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/random.h>

static void *checked(void *p)
{
	if (!p) {
		fputs("fakekube: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *xmalloc(size_t n)
{
	return checked(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size));
}

void *xrealloc(void *p, size_t n)
{
	return checked(realloc(p, n ? n : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
}

static void buf_room(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 256;

	if (b->len + n + 1 <= b->cap)
		return;
	while (cap < b->len + n + 1)
		cap *= 2;
	b->s = xrealloc(b->s, cap);
	b->cap = cap;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	buf_room(b, n);
	if (n)
		memcpy(b->s + b->len, p, n);
	b->len += n;
	b->s[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	buf_room(b, 128);
	va_start(ap, fmt);
	n = vsnprintf(b->s + b->len, b->cap - b->len, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	if ((size_t)n >= b->cap - b->len) {
		buf_room(b, (size_t)n);
		va_start(ap, fmt);
		vsnprintf(b->s + b->len, b->cap - b->len, fmt, ap);
		va_end(ap);
	}
	b->len += (size_t)n;
}

void buf_add_json(struct buf *b, const char *s, size_t n)
{
	size_t from = 0;

	buf_add(b, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		const unsigned char ch = (unsigned char)s[i];

		if (ch >= 0x20 && ch != '"' && ch != '\\')
			continue;
		buf_add(b, s + from, i - from);
		if (ch == '"' || ch == '\\')
			buf_addf(b, "\\%c", ch);
		else if (ch == '\n')
			buf_adds(b, "\\n");
		else
			buf_addf(b, "\\u%04x", ch);
		from = i + 1;
	}
	buf_add(b, s + from, n - from);
	buf_add(b, "\"", 1);
}

void buf_done(struct buf *b)
{
	free(b->s);
	*b = (struct buf)BUF_INIT;
}

struct arena_block {
	struct arena_block *next;
	size_t used, cap;
	_Alignas(max_align_t) char mem[];
};

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *blk = a->head;
	void *p;

	n = (n + 7) & ~(size_t)7;
	if (!blk || blk->cap - blk->used < n) {
		const size_t cap = n > 448 ? n : 448;

		blk = xmalloc(sizeof(*blk) + cap);
		blk->next = a->head;
		blk->used = 0;
		blk->cap = cap;
		a->head = blk;
	}
	p = blk->mem + blk->used;
	blk->used += n;
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	const size_t n = strlen(s) + 1;

	return memcpy(arena_alloc(a, n), s, n);
}

void arena_done(struct arena *a)
{
	struct arena_block *next;

	for (struct arena_block *blk = a->head; blk; blk = next) {
		next = blk->next;
		free(blk);
	}
	a->head = NULL;
}

static int64_t clock_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * SECOND_US + ts.tv_nsec / 1000;
}

int64_t now_us(void)
{
	return clock_us(CLOCK_REALTIME);
}

int64_t mono_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

const char *time_text(char out[TIME_TEXT_SIZE], int64_t us)
{
	/* gmtime_r and strftime cost more than the rest of a status update, and
	 * thousands of updates fall into one second: remember the last one. */
	static int64_t last_s = INT64_MIN;
	static char last[TIME_TEXT_SIZE];
	const int64_t s = us / SECOND_US;

	if (s != last_s) {
		const time_t t = (time_t)s;
		struct tm tm;

		gmtime_r(&t, &tm);
		if (strftime(last, sizeof(last), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
			strcpy(last, "1970-01-01T00:00:00Z");
		last_s = s;
	}
	memcpy(out, last, TIME_TEXT_SIZE);
	return out;
}

int64_t time_parse(const char *s)
{
	struct tm tm = { 0 };
	const char *end = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t us, unit = SECOND_US / 10;

	if (!end)
		return -1;
	us = (int64_t)timegm(&tm) * SECOND_US;
	if (*end == '.') {
		for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
			us += (*end - '0') * unit;
	}
	return strcmp(end, "Z") == 0 ? us : -1;
}

int duration_parse(const char *s, int64_t *us)
{
	static const struct {
		const char *unit;
		int64_t us;
	} units[] = {
		{ "us", 1 },
		{ "ms", 1000 },
		{ "s", SECOND_US },
		{ "m", 60 * SECOND_US },
		{ "h", 3600 * SECOND_US },
	};
	int64_t sum = 0;

	if (!*s)
		return -1;
	while (*s) {
		int64_t n = 0, scale = 0;
		size_t len;

		if (*s < '0' || *s > '9')
			return -1;
		for (; *s >= '0' && *s <= '9'; s++) {
			if (n > INT64_C(100000000))
				return -1;
			n = n * 10 + (*s - '0');
		}
		len = strspn(s, "abcdefghijklmnopqrstuvwxyz");
		if (len == 0 && *s == '\0')
			scale = SECOND_US;
		for (size_t i = 0; i < ARRAY_LEN(units); i++) {
			if (strlen(units[i].unit) == len && memcmp(units[i].unit, s, len) == 0)
				scale = units[i].us;
		}
		if (scale == 0)
			return -1;
		sum += n * scale;
		s += len;
	}
	*us = sum;
	return 0;
}

int quantity_parse(const char *s, int64_t *milli)
{
	static const struct {
		const char *suffix;
		double milli;
	} units[] = {
		{ "", 1e3 },
		{ "m", 1 },
		{ "u", 1e-3 },
		{ "n", 1e-6 },
		{ "k", 1e6 },
		{ "M", 1e9 },
		{ "G", 1e12 },
		{ "T", 1e15 },
		{ "P", 1e18 },
		{ "E", 1e21 },
		{ "Ki", 1024e3 },
		{ "Mi", 1048576e3 },
		{ "Gi", 1073741824e3 },
		{ "Ti", 1099511627776e3 },
		{ "Pi", 1125899906842624e3 },
		{ "Ei", 1152921504606846976e3 },
	};
	long double v = 0, scale = 1;
	bool digits = false, negative = false;

	if (*s == '+' || *s == '-')
		negative = *s++ == '-';
	for (; *s >= '0' && *s <= '9'; s++, digits = true)
		v = v * 10 + (*s - '0');
	if (*s == '.') {
		for (s++; *s >= '0' && *s <= '9'; s++, digits = true) {
			scale /= 10;
			v += (*s - '0') * scale;
		}
	}
	if (!digits)
		return -1;
	/* "1E" is exa, "1E3" an exponent: what follows decides. */
	if ((*s == 'e' || *s == 'E') && s[1] != '\0') {
		char *end;
		const long e = strtol(s + 1, &end, 10);

		if (*end != '\0' || e > 18 || e < -18)
			return -1;
		for (long i = 0; i < e; i++)
			v *= 10;
		for (long i = 0; i > e; i--)
			v /= 10;
		s = "";
	}
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(units[i].suffix, s) != 0)
			continue;
		v *= units[i].milli;
		if (v > (long double)(INT64_MAX / 2))
			v = (long double)(INT64_MAX / 2);
		*milli = (int64_t)v;
		if ((long double)*milli < v)
			*milli += 1;
		if (negative)
			*milli = -*milli;
		return 0;
	}
	return -1;
}

int uint_parse(const char *s, uint64_t *v)
{
	uint64_t n = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || n > (UINT64_MAX - 9) / 10)
			return -1;
		n = n * 10 + (uint64_t)(*s - '0');
	}
	*v = n;
	return 0;
}

static uint64_t rand_state;

void rand_seed(uint64_t seed)
{
	if (seed == 0 && getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint64_t)now_us();
	rand_state = seed;
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014. */
uint64_t rand_u64(void)
{
	uint64_t z = rand_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void uid_new(char out[UID_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	const uint64_t r[2] = { rand_u64(), rand_u64() };

	for (unsigned i = 0, nibble = 0; i < UID_SIZE - 1; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			out[i] = '-';
			continue;
		}
		out[i] = hex[(r[nibble / 16] >> (nibble % 16 * 4)) & 15];
		nibble++;
	}
	out[14] = '4';
	out[19] = hex[8 | ((r[1] >> 60) & 3)];
	out[UID_SIZE - 1] = '\0';
}

static const char b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char *base64_encode(const void *p, size_t n)
{
	const unsigned char *in = p;
	char *out = xmalloc(n * 4 / 3 + 4), *o = out;
	unsigned acc = 0;
	int bits = 0;

	for (size_t i = 0; i < n; i++) {
		acc = (acc << 8 | in[i]) & 0xfffff;
		for (bits += 8; bits >= 6; bits -= 6)
			*o++ = b64[acc >> (bits - 6) & 63];
	}
	if (bits)
		*o++ = b64[acc << (6 - bits) & 63];
	*o = '\0';
	return out;
}

char *base64_decode(const char *s, size_t *len)
{
	char *out = xmalloc(strlen(s) + 1), *o = out;
	unsigned acc = 0;
	int bits = 0;

	for (; *s && *s != '='; s++) {
		const char *at = strchr(b64, *s);

		if (!at) {
			free(out);
			return NULL;
		}
		acc = (acc << 6 | (unsigned)(at - b64)) & 0xfffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			*o++ = (char)(acc >> bits & 255);
		}
	}
	*o = '\0';
	*len = (size_t)(o - out);
	return out;
}
