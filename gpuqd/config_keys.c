#include "gpuqd/config_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/config.h"
#include "gpuqd/site/site.h"
#include "libgpuq/units.h"

static const char *const forms[] = {
	[GPUQ_K_BOOL] = "true | false",
	[GPUQ_K_INT] = "number",
	[GPUQ_K_LIMIT] = "number or unlimited",
	[GPUQ_K_STR] = "text",
	[GPUQ_K_NAME] = "name",
	[GPUQ_K_DURATION] = "duration",
	[GPUQ_K_BYTES] = "size",
	[GPUQ_K_MILLI] = "number",
	[GPUQ_K_INSTANT] = "instant",
	[GPUQ_K_ENUM] = "",
	[GPUQ_K_SIGNAL] = "signal",
	[GPUQ_K_STRLIST] = "list",
	[GPUQ_K_STRMAP] = "map",
	[GPUQ_K_OBJECT] = "map",
	[GPUQ_K_OBJECT_PTR] = "map",
	[GPUQ_K_OBJECTS] = "list",
	[GPUQ_K_VAL] = "map",
	[GPUQ_K_CUSTOM] = "",
};

static void print_form(const struct gpuq_field *f, struct gpuq_buf *out)
{
	gpuq_buf_adds(out, f->form ? f->form : forms[f->kind]);
	for (size_t i = 0; f->kind == GPUQ_K_ENUM && !f->form && f->names[i]; i++)
		gpuq_buf_printf(out, "%s%s", i ? " | " : "", f->names[i]);
}

/* The value of a key that no file names. Empty where it depends on the machine, or is nothing. */
static void print_default(const struct gpuq_field *f, const void *at, struct gpuq_buf *out)
{
	char text[64] = "";
	int64_t i = 0;

	if (f->flags & GPUQ_F_REQUIRED)
		return;
	if (f->kind == GPUQ_K_INT || f->kind == GPUQ_K_LIMIT || f->kind == GPUQ_K_DURATION ||
	    f->kind == GPUQ_K_BYTES)
		memcpy(&i, at, sizeof(i));
	if (i == GPUQ_UNLIMITED)
		gpuq_buf_adds(out, "unlimited");
	else if (f->kind == GPUQ_K_BOOL)
		gpuq_buf_adds(out, *(const bool *)at ? "true" : "false");
	else if (f->kind == GPUQ_K_ENUM)
		gpuq_buf_adds(out, f->names[*(const int *)at]);
	else if (f->kind == GPUQ_K_STR && *(const char *const *)at)
		gpuq_buf_adds(out, *(const char *const *)at);
	else if (i >= 0 && (f->kind == GPUQ_K_INT || f->kind == GPUQ_K_LIMIT))
		gpuq_buf_printf(out, "%lld", (long long)i);
	else if (i > 0 && f->kind == GPUQ_K_DURATION)
		gpuq_duration_print(i, text, sizeof(text));
	else if (f->max && f->kind == GPUQ_K_DURATION) /* else 0 is not given */
		gpuq_buf_adds(out, "0");
	else if (i > 0 && f->kind == GPUQ_K_BYTES)
		gpuq_bytes_print(i, text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static void print_schema(const struct gpuq_schema *s, const char *path, struct gpuq_buf *out)
{
	char *dflt = calloc(1, s->size), below[128];

	if (!dflt)
		abort();
	if (s->defaults)
		s->defaults(dflt);
	for (const struct gpuq_field *f = s->fields; f->key; f++) {
		gpuq_buf_printf(out, "%s\t%s\t", path, f->key);
		print_form(f, out);
		gpuq_buf_adds(out, "\t");
		print_default(f, dflt + f->offset, out);
		gpuq_buf_printf(out, "\t%s\n", f->doc);
	}
	for (const struct gpuq_field *f = s->fields; f->key; f++)
		if (f->sub) {
			snprintf(below, sizeof(below), "%s:%s", path, f->key);
			print_schema(f->sub, below, out);
		}
	free(dflt);
}

void config_keys_print(struct gpuq_buf *out)
{
	print_schema(&config_schema, "gpuqd.yaml", out);
	print_schema(&site_schema, "site", out);
}
