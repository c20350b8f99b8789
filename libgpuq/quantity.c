#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/units.h"

/* Kubernetes quantities, apimachinery's resource.Quantity: a decimal number and a
 * binary suffix, a decimal suffix or an exponent. */
static const struct suffix {
	const char *word;
	int ten, two; /* 10^ten * 2^two */
} suffixes[] = {
	{ "", 0, 0 },    { "Ki", 0, 10 }, { "Mi", 0, 20 }, { "Gi", 0, 30 }, { "Ti", 0, 40 },
	{ "Pi", 0, 50 }, { "Ei", 0, 60 }, { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
	{ "k", 3, 0 },   { "K", 3, 0 },   { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },
	{ "P", 15, 0 },  { "E", 18, 0 },
};

typedef unsigned __int128 u128;

struct number {
	uint64_t mant; /* mant * 10^ten * 2^two, and a little more when `more` */
	long ten;
	int two;
	bool more;
};

/* Digits with at most one point; those beyond what 64 bits hold only round up. */
static const char *read_digits(const char *p, struct number *n)
{
	bool point = false, any = false;

	for (;; p++) {
		if (*p == '.' && !point) {
			point = true;
		} else if (isdigit((unsigned char)*p)) {
			any = true;
			if (n->mant < UINT64_MAX / 10 - 1) {
				n->mant = n->mant * 10 + (uint64_t)(*p - '0');
				n->ten -= point;
			} else {
				n->more = n->more || *p != '0';
				n->ten += !point;
			}
		} else {
			return any ? p : NULL;
		}
	}
}

/* "e3", "E-2"; false when p is no exponent ("E" alone is exa). */
static bool read_exponent(const char *p, struct number *n)
{
	long v = 0, sign = 1;

	if (*p != 'e' && *p != 'E')
		return false;
	p++;
	if (*p == '-' || *p == '+')
		sign = *p++ == '-' ? -1 : 1;
	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++)
		if (v < LONG_MAX / 20)
			v = v * 10 + (*p - '0');
	n->ten += sign * v;
	return *p == '\0';
}

static bool read_suffix(const char *p, struct number *n)
{
	if (read_exponent(p, n))
		return true;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(p, suffixes[i].word) == 0) {
			n->ten += suffixes[i].ten;
			n->two += suffixes[i].two;
			return true;
		}
	return false;
}

/* The number rounded up; false when it is beyond int64. mant has 64 bits and two is
 * at most 60, so the product fits in 128 before it is divided. */
static bool round_up(const struct number *n, int64_t *out)
{
	u128 v = (u128)n->mant << n->two;
	u128 div = 1;

	if (n->mant == 0) {
		*out = n->more;
		return true;
	}
	if (n->ten > 0) {
		for (long i = 0; i < n->ten; i++) {
			v *= 10;
			if (v > INT64_MAX)
				return false;
		}
	} else if (n->ten < -38) {
		v = 1;
	} else {
		for (long i = n->ten; i < 0; i++)
			div *= 10;
		v = v / div + (v % div != 0 || n->more);
	}
	if (v > INT64_MAX)
		return false;
	*out = (int64_t)v;
	return true;
}

static int parse(const char *text, int thousandths, int64_t *out, const char *what,
		 const char *example, struct gpuq_err *err)
{
	struct number n = { .ten = thousandths };
	const char *p = text + (*text == '+');
	int64_t v;

	if (*text == '-')
		return gpuq_fail(err, GPUQ_EINVAL, "%s must not be negative ('%.64s')", what, text);
	p = read_digits(p, &n);
	if (!p || !read_suffix(p, &n))
		return gpuq_fail(err, GPUQ_EINVAL, "'%.64s' is not a %s: expected %s", text,
				 strchr(what, ' ') + 1, example);
	if (!round_up(&n, &v))
		return gpuq_fail(err, GPUQ_ERANGE, "'%.64s' is too large", text);
	*out = v;
	return 0;
}

int gpuq_bytes_parse(const char *text, int64_t *bytes, struct gpuq_err *err)
{
	return parse(text, 0, bytes, "a size", "512Gi, 100M, 1.5Gi or a number of bytes", err);
}

int gpuq_milli_parse(const char *text, int64_t *milli, struct gpuq_err *err)
{
	return parse(text, 3, milli, "a quantity", "2, 0.5 or 100m", err);
}

/* Parse Slurm's --mem: whole numbers of MiB, or with K, M, G, T of 1024 each; K rounds up to a
 * MiB as Slurm does. Text after the letter ("GB", "GiB") is ignored there. */
int gpuq_slurm_mem_parse(const char *text, int64_t *bytes, struct gpuq_err *err)
{
	static const char letters[] = "kmgt";
	static const char *const tails[] = { "", "b", "i", "ib" };
	const char *p = text, *l = NULL;
	int64_t v = 0, scale = INT64_C(1) << 20;
	bool fits = true, known = false;

	for (; isdigit((unsigned char)*p); p++)
		fits = fits && !__builtin_mul_overflow(v, 10, &v) &&
		       !__builtin_add_overflow(v, *p - '0', &v);
	if (p > text && *p) {
		l = strchr(letters, tolower((unsigned char)*p));
		for (size_t i = 0; l && i < sizeof(tails) / sizeof(tails[0]); i++)
			known = known || strcasecmp(p + 1, tails[i]) == 0;
	}
	if (p == text || (*p && !known))
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"'%.64s' is not a memory size: expected 4000 (MiB), 512M, 64G or 2T", text);
	if (l)
		scale = INT64_C(1024) << (10 * (l - letters));
	if (!fits || __builtin_mul_overflow(v, scale, &v) || v > INT64_MAX - (1 << 20))
		return gpuq_fail(err, GPUQ_ERANGE, "'%.64s' is too large", text);
	*bytes = (v + (1 << 20) - 1) >> 20 << 20;
	return 0;
}

void gpuq_bytes_print(int64_t bytes, char *out, size_t room)
{
	static const char binary[] = "KMGTPE", decimal[] = "kMGTPE";
	int64_t v = bytes;
	int n = 0;

	while (v != 0 && v % 1024 == 0 && n < 6) {
		v /= 1024;
		n++;
	}
	if (n) {
		snprintf(out, room, "%lld%ci", (long long)v, binary[n - 1]);
		return;
	}
	while (v != 0 && v % 1000 == 0 && n < 6) {
		v /= 1000;
		n++;
	}
	if (n)
		snprintf(out, room, "%lld%c", (long long)v, decimal[n - 1]);
	else
		snprintf(out, room, "%lld", (long long)v);
}

void gpuq_milli_print(int64_t milli, char *out, size_t room)
{
	const uint64_t m = milli < 0 ? 0 - (uint64_t)milli : (uint64_t)milli;
	const char *sign = milli < 0 ? "-" : "";
	unsigned part = (unsigned)(m % 1000);
	int digits = 3;

	for (; digits > 0 && part % 10 == 0; digits--)
		part /= 10;
	if (digits == 0)
		snprintf(out, room, "%s%llu", sign, (unsigned long long)(m / 1000));
	else
		snprintf(out, room, "%s%llu.%0*u", sign, (unsigned long long)(m / 1000), digits,
			 part);
}
