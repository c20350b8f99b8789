#include "gpuqd/flow/copies/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

#define INSTANT_BYTES 32

void manifest_write(const struct manifest *m, struct gpuq_buf *out)
{
	char at[INSTANT_BYTES];

	gpuq_instant_print(m->time_us, at, sizeof(at));
	gpuq_buf_printf(out,
			"# gpuq backup %d\n# cluster %s\n# store %s\n# position %" PRIu32
			"/%" PRIu64 "\n# schema %u\n# time %s\n# bytes %" PRId64 "\n",
			MANIFEST_VERSION, m->cluster, m->id.store_id, m->id.epoch, m->id.seq,
			m->schema, at, m->bytes);
	if (m->audited_us) {
		gpuq_instant_print(m->audited_us, at, sizeof(at));
		gpuq_buf_printf(out, "# audited %s %s\n", at, m->audit);
	}
	gpuq_buf_printf(out, "%s  %s\n", m->sha256, m->file);
}

/* The rest of a line that begins with word; NULL: it does not. */
static const char *rest_of(const char *line, const char *word)
{
	const size_t n = strlen(word);

	return strncmp(line, word, n) == 0 ? line + n : NULL;
}

static bool read_instant(const char *text, int64_t *out)
{
	char word[INSTANT_BYTES];
	const size_t n = strcspn(text, " ");

	if (n >= sizeof(word))
		return false;
	memcpy(word, text, n);
	word[n] = '\0';
	return gpuq_instant_parse(word, 0, out, NULL) == 0;
}

static bool read_audit(const char *text, struct manifest *m)
{
	const char *what = strchr(text, ' ');

	if (!what || !read_instant(text, &m->audited_us))
		return false;
	snprintf(m->audit, sizeof(m->audit), "%s", what + 1);
	return true;
}

/* A line of which nothing is known is one of a later gpuqd. */
static bool read_line(const char *line, struct manifest *m)
{
	const char *v;

	if ((v = rest_of(line, "# cluster ")))
		return sscanf(v, "%63[0-9A-Za-z._-]", m->cluster) == 1;
	if ((v = rest_of(line, "# store ")))
		return sscanf(v, "%32[0-9a-f]", m->id.store_id) == 1;
	if ((v = rest_of(line, "# position ")))
		return sscanf(v, "%" SCNu32 "/%" SCNu64, &m->id.epoch, &m->id.seq) == 2;
	if ((v = rest_of(line, "# schema ")))
		return sscanf(v, "%u", &m->schema) == 1;
	if ((v = rest_of(line, "# bytes ")))
		return sscanf(v, "%" SCNd64, &m->bytes) == 1 && m->bytes >= 0;
	if ((v = rest_of(line, "# time ")))
		return read_instant(v, &m->time_us);
	if ((v = rest_of(line, "# audited ")))
		return read_audit(v, m);
	return line[0] == '#' || sscanf(line, "%64[0-9a-f]  %223s", m->sha256, m->file) == 2;
}

static int bad(const char *file, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECORRUPT, "%s" NAMES_MANIFEST ": cut short or damaged", file);
}

int manifest_read(const char *file, const char *text, size_t n, struct manifest *out,
		  struct gpuq_err *err)
{
	char copy[MANIFEST_BYTES_MAX + 1], *next = copy, *line;
	struct manifest m = { .file = "" };
	int version = 0;

	if (n == 0 || n > MANIFEST_BYTES_MAX || text[n - 1] != '\n')
		return bad(file, err);
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (sscanf(copy, "# gpuq backup %d\n", &version) != 1)
		return bad(file, err);
	if (version > MANIFEST_VERSION)
		return gpuq_fail(err, GPUQ_EVERSION,
				 "%s" NAMES_MANIFEST
				 ": of version %d, this gpuqd knows %d: use the "
				 "gpuqd that wrote it",
				 file, version, MANIFEST_VERSION);
	while ((line = strsep(&next, "\n")))
		if (*line && !read_line(line, &m))
			return bad(file, err);
	if (strlen(m.sha256) != DIGEST_HEX_BYTES - 1 || strcmp(m.file, file) != 0 ||
	    !m.cluster[0] || !m.id.store_id[0] || !m.schema)
		return bad(file, err);
	*out = m;
	return 0;
}

bool manifest_is_damaged(const struct manifest *m)
{
	return m->audited_us && strncmp(m->audit, "whole", 5) != 0;
}
