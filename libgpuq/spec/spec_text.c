/* The small languages inside a spec: array sets, dependencies, signals, retries. */
#include "libgpuq/grow.h"
#include "libgpuq/spec/spec_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"
#include "libgpuq/units.h"

/* ---- arrays ---- */

static int cmp_u32(const void *x, const void *y)
{
	const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

/* Sorted distinct indices to ranges: a run of equal steps is one range, but two
 * indices that are not neighbours stay two. */
static size_t ranges_of(const uint32_t *ix, size_t n, struct gpuq_range *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n;) {
		const uint32_t step = i + 1 < n ? ix[i + 1] - ix[i] : 1;
		size_t j = i + 1;

		while (j < n && ix[j] - ix[j - 1] == step)
			j++;
		if (step > 1 && j - i < 3)
			j = i + 1;
		if (out)
			out[n_out] = (struct gpuq_range){ ix[i], ix[j - 1], j - i > 1 ? step : 1 };
		n_out++;
		i = j;
	}
	return n_out;
}

int gpuq_array_parse(struct gpuq_arena *a, const char *text, struct gpuq_array *out,
		     struct gpuq_err *err)
{
	const char *p = text;
	struct gpuq_array got = { 0 };
	struct gpuq_range whole = { 0 };
	uint32_t *ix = NULL;
	size_t n = 0, room = 0, distinct = 0;
	int rc;

	for (;;) {
		int64_t first, last, step = 1;

		if (!spec_digits(&p, 0, GPUQ_ARRAY_INDEX_MAX, &first))
			goto bad;
		last = first;
		if (*p == '-') {
			p++;
			if (!spec_digits(&p, first, GPUQ_ARRAY_INDEX_MAX, &last))
				goto bad;
			if (*p == ':') {
				p++;
				if (!spec_digits(&p, 1, GPUQ_ARRAY_INDEX_MAX, &step))
					goto bad;
			}
		}
		const size_t more = (size_t)((last - first) / step) + 1;

		if (more > GPUQ_ARRAY_MAX || n > GPUQ_ARRAY_MAX) {
			rc = gpuq_fail(err, GPUQ_ERANGE,
				       "'%s' has too many elements: expected at most %u", text,
				       GPUQ_ARRAY_MAX);
			goto out;
		}
		/* Most arrays are one range, and each element that starts reads it again. */
		if (n == 0 && *p != ',' && (step == 1 || more != 2)) {
			whole = (struct gpuq_range){ first, first + (int64_t)(more - 1) * step,
						     more > 1 ? step : 1 };
			distinct = more;
			break;
		}
		if (!grow_to(&ix, &room, n + more)) {
			rc = gpuq_no_memory(err);
			goto out;
		}
		for (int64_t i = first; i <= last; i += step)
			ix[n++] = (uint32_t)i;
		if (*p != ',')
			break;
		p++;
	}
	if (*p == '%') {
		p++;
		if (!spec_digits(&p, 1, GPUQ_ARRAY_MAX, &got.throttle))
			goto bad;
	}
	if (*p)
		goto bad;

	if (n)
		qsort(ix, n, sizeof(*ix), cmp_u32);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || ix[i] != ix[i - 1])
			ix[distinct++] = ix[i];
	if (distinct > GPUQ_ARRAY_MAX) {
		rc = gpuq_fail(err, GPUQ_ERANGE, "'%s' has %zu elements: expected at most %u", text,
			       distinct, GPUQ_ARRAY_MAX);
		goto out;
	}
	got.size = (int64_t)distinct;
	got.n_ranges = n ? ranges_of(ix, distinct, NULL) : 1;
	got.ranges = gpuq_arena_calloc(a, got.n_ranges, sizeof(*got.ranges));
	if (!got.ranges) {
		rc = gpuq_no_memory(err);
		goto out;
	}
	if (n)
		ranges_of(ix, distinct, got.ranges);
	else
		got.ranges[0] = whole;
	*out = got;
	rc = 0;
	goto out;
bad:
	rc = gpuq_fail(
		err, GPUQ_EINVAL,
		"expected indices from 0 to %u such as 0-99, 1,3,5-9:2 or 0-99%%10, not '%.80s'",
		GPUQ_ARRAY_INDEX_MAX, text);
out:
	free(ix);
	return rc;
}

void gpuq_array_print(const struct gpuq_array *array, struct gpuq_buf *out)
{
	for (size_t i = 0; i < array->n_ranges; i++) {
		const struct gpuq_range *r = &array->ranges[i];

		gpuq_buf_printf(out, "%s%lld", i ? "," : "", (long long)r->first);
		if (r->last > r->first)
			gpuq_buf_printf(out, "-%lld", (long long)r->last);
		if (r->last > r->first && r->step > 1)
			gpuq_buf_printf(out, ":%lld", (long long)r->step);
	}
}

/* ---- dependencies ---- */

static const char *const depend_words[] = { "after",     "afterany",  "afterok", "afternotok",
					    "aftercorr", "singleton", NULL };

const char *gpuq_depend_word(enum gpuq_depend_type type)
{
	return depend_words[type];
}

static int depend_add(struct gpuq_arena *a, struct gpuq_spec *s, const struct gpuq_depend *d,
		      struct gpuq_err *err)
{
	struct gpuq_depend *grown;

	if (s->n_depends >= GPUQ_DEPENDS_MAX)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u dependencies",
				 GPUQ_DEPENDS_MAX);
	grown = gpuq_arena_calloc(a, s->n_depends + 1, sizeof(*grown));
	if (!grown)
		return gpuq_no_memory(err);
	if (s->n_depends)
		memcpy(grown, s->depends, s->n_depends * sizeof(*grown));
	grown[s->n_depends++] = *d;
	s->depends = grown;
	return 0;
}

static int depend_bad(struct gpuq_err *err, const char *text)
{
	return gpuq_fail(err, GPUQ_EINVAL,
			 "expected a dependency such as afterok:123, afterany:12:13_4, after:12+5 "
			 "(minutes) or singleton, not '%.80s'",
			 text);
}

int spec_depends_parse(struct gpuq_arena *a, const char *text, struct gpuq_spec *out,
		       struct gpuq_err *err)
{
	struct gpuq_spec s = { .depends = out->depends, .n_depends = out->n_depends };
	const char *p = text;
	char sep = 0;
	int rc;

	for (;;) {
		struct gpuq_depend d = { .array_index = -1 };
		const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz");
		char word[32];

		if (n == 0 || n >= sizeof(word))
			return depend_bad(err, text);
		memcpy(word, p, n);
		word[n] = 0;
		p += n;
		while (depend_words[d.type] && strcmp(depend_words[d.type], word) != 0)
			d.type++;
		if (!depend_words[d.type]) {
			const char *near = gpuq_nearest(word, depend_words);

			return gpuq_fail(err, GPUQ_EINVAL,
					 "unknown dependency '%s'%s%s%s: expected after, afterany, "
					 "afterok, afternotok, aftercorr or singleton",
					 word, near ? " (did you mean '" : "", near ? near : "",
					 near ? "'?)" : "");
		}
		if (d.type == GPUQ_DEP_SINGLETON) {
			rc = depend_add(a, &s, &d, err);
			if (rc < 0)
				return rc;
		} else if (*p != ':') {
			return depend_bad(err, text);
		}
		while (d.type != GPUQ_DEP_SINGLETON && *p == ':') {
			p++;
			d.array_index = -1;
			d.delay_us = 0;
			if (!spec_digits(&p, 1, UINT32_MAX, &d.job))
				return depend_bad(err, text);
			if (*p == '_') {
				p++;
				if (*p == '*') /* the whole array, as squeue of Slurm prints it */
					p++;
				else if (!spec_digits(&p, 0, GPUQ_ARRAY_INDEX_MAX, &d.array_index))
					return depend_bad(err, text);
			}
			if (*p == '+') {
				p++;
				if (d.type != GPUQ_DEP_AFTER ||
				    !spec_digits(&p, 0, 525600, &d.delay_us))
					return depend_bad(err, text);
				d.delay_us *= 60 * GPUQ_US_PER_S;
			}
			rc = depend_add(a, &s, &d, err);
			if (rc < 0)
				return rc;
		}
		if (!*p)
			break;
		if ((*p != ',' && *p != '?') || (sep && *p != sep))
			return *p == ',' || *p == '?'
				       ? gpuq_fail(
						 err, GPUQ_EINVAL,
						 "expected either ',' (all of them) or '?' (any of "
						 "them) between dependencies, not both")
				       : depend_bad(err, text);
		sep = *p++;
	}
	out->depends = s.depends;
	out->n_depends = s.n_depends;
	if (sep == '?')
		out->depends_any = true;
	return 0;
}

const char *gpuq_depend_print(struct gpuq_arena *a, const struct gpuq_depend *d)
{
	char element[24] = "", delay[24] = "";

	if (d->type == GPUQ_DEP_SINGLETON)
		return depend_words[d->type];
	if (d->array_index >= 0)
		snprintf(element, sizeof(element), "_%lld", (long long)d->array_index);
	if (d->delay_us)
		snprintf(delay, sizeof(delay), "+%lld",
			 (long long)(d->delay_us / (60 * GPUQ_US_PER_S)));
	return gpuq_arena_printf(a, "%s:%lld%s%s", depend_words[d->type], (long long)d->job,
				 element, delay);
}

/* ---- signals, licenses, retries, MIG profiles ---- */

int spec_signal_parse(const char *text, struct gpuq_spec *out, struct gpuq_err *err)
{
	const char *p = text, *at = strchr(text, '@');
	const char *colon = strchr(text, ':');
	bool batch_only = false;
	int64_t lead_s = 60; /* sbatch's default */
	char name[16];
	size_t n;
	int signal;

	if (colon && (!at || colon < at)) {
		for (; p < colon; p++) {
			if (*p == 'B')
				batch_only = true;
			else if (*p != 'R') /* R: reservations may be overlapped; nothing here */
				goto bad;
		}
		p++;
	}
	n = at ? (size_t)(at - p) : strlen(p);
	if (n == 0 || n >= sizeof(name))
		goto bad;
	memcpy(name, p, n);
	name[n] = 0;
	signal = gpuq_signal_number(name);
	if (signal == 0)
		goto bad;
	if (at) {
		at++;
		if (!spec_digits(&at, 0, 65535, &lead_s) || *at)
			goto bad;
	}
	out->signal = signal;
	out->signal_lead_us = lead_s * GPUQ_US_PER_S;
	out->signal_batch_only = batch_only;
	return 0;
bad:
	return gpuq_fail(err, GPUQ_EINVAL,
			 "expected [B:]SIGNAL[@SECONDS] such as USR1@300 or B:TERM@60, not '%.80s'",
			 text);
}

int spec_licenses_parse(struct gpuq_arena *a, const char *text, struct gpuq_strmap *out,
			struct gpuq_err *err)
{
	struct gpuq_strlist words;
	struct gpuq_strmap m = { 0 };
	int rc;

	if (spec_split(a, text, ',', &words) < 0)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < words.n; i++) {
		const char *w = words.items[i];
		const size_t n = strcspn(w, ":=");
		const char *name = gpuq_arena_strndup(a, w, n), *count = "1", *p;
		int64_t value;

		if (!name)
			return gpuq_no_memory(err);
		if (w[n])
			count = w + n + 1;
		p = count;
		if (!spec_name_ok(name) || !spec_digits(&p, 1, INT32_MAX, &value) || *p)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "expected licenses such as matlab:2,ansys, not '%.80s'",
					 text);
		rc = spec_map_set(a, &m, name, gpuq_arena_printf(a, "%lld", (long long)value));
		if (rc < 0)
			return spec_map_failed(err, rc);
	}
	*out = m;
	return 0;
}

const char *const spec_retry_words[] = { "infra", "failure", "oom", "timeout", NULL };

int spec_retry_word(struct gpuq_arena *a, const char *word, struct gpuq_retry *out,
		    struct gpuq_err *err)
{
	int64_t code;
	const char *p = word + 5;
	uint8_t *exits;
	size_t i;

	for (i = 0; spec_retry_words[i]; i++) {
		if (strcmp(word, spec_retry_words[i]) == 0) {
			out->on |= 1u << i;
			return 0;
		}
	}
	if (strncmp(word, "exit:", 5) != 0 || !spec_digits(&p, 1, 255, &code) || *p)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected infra, failure, oom, timeout or exit:CODE (1-255), not "
				 "'%.80s'",
				 word);
	/* Sorted and distinct, so that one set has one form. */
	for (i = 0; i < out->n_exits && out->exits[i] < code; i++)
		;
	if (i < out->n_exits && out->exits[i] == code)
		return 0;
	exits = gpuq_arena_alloc(a, out->n_exits + 1);
	if (!exits)
		return gpuq_no_memory(err);
	if (out->n_exits) {
		memcpy(exits, out->exits, i);
		memcpy(exits + i + 1, out->exits + i, out->n_exits - i);
	}
	exits[i] = (uint8_t)code;
	out->exits = exits;
	out->n_exits++;
	return 0;
}

/* "1g.10gb", "1g.5gb+me", "1c.3g.20gb", "1g.10gb.shared": numbers, units and dots, nothing else, so
 * that it can stand in a resource name. */
bool spec_mig_ok(const char *text)
{
	int64_t n;

	if (!spec_digits(&text, 1, 99, &n))
		return false;
	if (*text == 'c') {
		if (*++text != '.')
			return false;
		text++;
		if (!spec_digits(&text, 1, 99, &n))
			return false;
	}
	if (text[0] != 'g' || text[1] != '.')
		return false;
	text += 2;
	if (!spec_digits(&text, 1, 9999, &n) || text[0] != 'g' || text[1] != 'b')
		return false;
	text += 2;
	if ((*text == '+' || *text == '.') && strncmp(text + 1, "me", 2) == 0) {
		text += 3; /* "+me" is ".me" in a resource name */
		if (strncmp(text, ".all", 4) == 0)
			text += 4;
	}
	return *text == 0 || strcmp(text, GPUQ_PROFILE_SHARED) == 0;
}

bool spec_mig_fits(const char *text)
{
	int64_t slices = 0;

	if (!spec_digits(&text, 1, GPUQ_MIG_SLICES, &slices))
		return false;
	return *text != 'c' || (text += 2, spec_digits(&text, 1, GPUQ_MIG_SLICES, &slices));
}
