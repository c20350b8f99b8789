/* Objects that stand beside the jobs of a file: gpuq creates none of them. */
#include <stdio.h>
#include <string.h>

#include "libgpuq/spec/kinds/kinds.h"
#include "libgpuq/spec/kinds/others.h"
#include "libgpuq/spec/spec_check.h"
#include "libgpuq/spec/spec_template.h"
#include "libgpuq/spec/spec_util.h"

static bool is_job(const struct gpuq_val *doc)
{
	const struct kind *k = spec_kind_of(doc);

	return k && k->read;
}

static const struct gpuq_val *item_of(const struct gpuq_val *doc, size_t i)
{
	const struct gpuq_val *items = gpuq_get(doc, "items");

	return items && items->type == GPUQ_LIST && i < items->n ? items->items[i] : NULL;
}

/* Objects of a document: itself, or the items of a List. */
static const struct gpuq_val *object(const struct gpuq_val *doc, size_t i)
{
	return spec_is_list(doc) ? item_of(doc, i) : i == 0 ? doc : NULL;
}

size_t spec_jobs_count(struct gpuq_val *const *docs, size_t n)
{
	const struct gpuq_val *o;
	size_t jobs = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; (o = object(docs[i], k)) != NULL; k++)
			jobs += is_job(o) || !spec_is_manifest(o);
	return jobs;
}

/* ---- the lines of a document ---- */

static bool begins_document(const char *line, size_t n)
{
	return n >= 3 && memcmp(line, "---", 3) == 0 &&
	       (n == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r' || line[3] == '\n');
}

/* The lines from the --- before line `at` to the one before the next ---; *last 0 = the end. */
static void lines_of(const char *text, size_t n, unsigned at, unsigned *first, unsigned *last)
{
	const char *p = text, *end = text + n;

	*first = 1;
	*last = 0;
	for (unsigned line = 1; p < end; line++) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		const size_t len = eol ? (size_t)(eol - p) : (size_t)(end - p);

		if (begins_document(p, len) && line <= at)
			*first = line;
		else if (begins_document(p, len) && !*last)
			*last = line - 1;
		p += len + 1;
	}
}

/* A file name as one word of a shell. */
static void quote(struct gpuq_buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._/+-";

	if (*word && strspn(word, plain) == strlen(word)) {
		gpuq_buf_adds(out, word);
		return;
	}
	gpuq_buf_quote(out, word);
}

/* "v1 Service train, line 4". */
static void name_object(struct gpuq_buf *out, const struct gpuq_val *o)
{
	const char *name = gpuq_get_str(gpuq_get(o, "metadata"), "name", "");

	gpuq_buf_printf(out, "%.60s %.60s%s%.80s (line %u)", gpuq_get_str(o, "apiVersion", "?"),
			gpuq_get_str(o, "kind", "?"), *name ? " " : "", name, o->at.line);
}

/* The command that creates the documents that are no jobs. Items of a List have no lines of their
 * own, and standard input is not there any more. */
static void tell_command(const struct gpuq_reader *r, struct gpuq_buf *to,
			 struct gpuq_val *const *docs, size_t n, const char *text, size_t n_text)
{
	struct gpuq_buf ranges = GPUQ_BUF_INIT;
	unsigned first, last;
	bool all = strcmp(r->file, "-") != 0;

	for (size_t i = 0; i < n && all; i++) {
		all = !spec_is_list(docs[i]);
		if (!all || is_job(docs[i]) || !spec_is_manifest(docs[i]))
			continue;
		lines_of(text, n_text, docs[i]->at.line, &first, &last);
		gpuq_buf_printf(&ranges, "%s%u,", ranges.len ? ";" : "", first);
		if (last)
			gpuq_buf_printf(&ranges, "%up", last);
		else
			gpuq_buf_adds(&ranges, "$p");
	}
	if (all) {
		gpuq_buf_printf(to, "create them with: sed -n '%s' ", gpuq_buf_str(&ranges));
		quote(to, r->file);
		gpuq_buf_adds(to, " | kubectl apply -f -\n");
	} else {
		gpuq_buf_adds(to, "create them with kubectl apply -f of a file of their own\n");
	}
	gpuq_buf_done(&ranges);
}

int spec_others(struct gpuq_reader *r, struct gpuq_buf *warnings, struct gpuq_val *const *docs,
		size_t n, const char *text, size_t n_text, bool ignore)
{
	const struct gpuq_val *o, *first = NULL;
	struct gpuq_buf list = GPUQ_BUF_INIT;
	size_t others = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; (o = object(docs[i], k)) != NULL; k++) {
			if (is_job(o) || !spec_is_manifest(o))
				continue;
			first = first ? first : o;
			if (others++ < 6) {
				gpuq_buf_adds(&list, others > 1 ? ", " : "");
				name_object(&list, o);
			}
		}
	if (others > 6)
		gpuq_buf_printf(&list, " and %zu more", others - 6);
	if (others && !ignore) {
		rc = spec_fail(r, first, GPUQ_EINVAL,
			       "the file holds objects that gpuq does not create: %s; create them "
			       "with kubectl and submit with --ignore-other-kinds",
			       gpuq_buf_str(&list));
	} else if (others && warnings) {
		gpuq_buf_printf(warnings, "%s: not created by gpuq: %s\n", r->file,
				gpuq_buf_str(&list));
		tell_command(r, warnings, docs, n, text, n_text);
	}
	gpuq_buf_done(&list);
	return rc;
}
