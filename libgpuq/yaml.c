#include "libgpuq/yaml.h"

#include <string.h>

#include <yaml.h>

#include "libgpuq/limits.h"
#include "libgpuq/yaml_alias.h"
#include "libgpuq/yaml_plain.h"

/* A container that is being filled; `key` is set between a key and its value. */
struct level {
	struct gpuq_val *v;
	const char *key;
	struct gpuq_mark key_at;
	bool merging; /* the key is <<: its value goes to `merge` */
	struct gpuq_val *merge; /* values of << */
};

struct builder {
	struct gpuq_arena *a;
	const char *file, *text;
	size_t n;
	struct gpuq_err *err;
	yaml_parser_t parser;
	struct level levels[GPUQ_YAML_DEPTH_MAX];
	unsigned depth;
	size_t nodes, nodes_max;
	bool kube; /* as Kubernetes' tools read: aliases, merge keys, octal in manifests */
	struct yaml_anchors anchors;
	struct gpuq_mark octal_at; /* the document's first number such as 0755; line 0 = none */
	const char *octal;
	struct gpuq_val *root; /* of the current document, once complete */
	struct gpuq_val *docs; /* a list */
};

static int fail_at(struct builder *b, int code, uint32_t line, uint32_t col, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static int fail_at(struct builder *b, int code, uint32_t line, uint32_t col, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	gpuq_failv(b->err, code, fmt, ap);
	va_end(ap);
	gpuq_err_prefix(b->err, "%s:%u:%u", b->file, line, col);
	return code;
}

static int no_memory(struct builder *b)
{
	return gpuq_fail(b->err, GPUQ_ENOMEM, "%s: no memory for it", b->file);
}

static struct gpuq_mark mark(const yaml_event_t *e)
{
	return (struct gpuq_mark){ (uint32_t)e->start_mark.line + 1,
				   (uint32_t)e->start_mark.column + 1 };
}

#define FAIL_EVENT(b, e, code, ...) fail_at(b, code, mark(e).line, mark(e).col, __VA_ARGS__)

/* Whether the line's blank start, up to where libyaml stopped, holds a tab: by far
 * the commonest reason for errors that are hard to read. */
static bool tab_indents(const struct builder *b, size_t line)
{
	const char *p = b->text, *end = b->text + b->n;

	for (; line > 0 && p < end; line--) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			return false;
		p++;
	}
	while (p < end && *p == ' ')
		p++;
	return p < end && *p == '\t';
}

static int fail_syntax(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	uint32_t line = (uint32_t)p->problem_mark.line + 1;
	uint32_t col = (uint32_t)p->problem_mark.column + 1;

	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(b);
	if (p->error == YAML_READER_ERROR) {
		/* No mark: the reader is ahead of the scanner. */
		line = col = 1;
		for (size_t i = 0; i < p->problem_offset && i < b->n; i++) {
			col = b->text[i] == '\n' ? 1 : col + 1;
			line += b->text[i] == '\n';
		}
		return fail_at(b, GPUQ_EINVAL, line, col, "not UTF-8 text: %s", p->problem);
	}
	if (tab_indents(b, p->problem_mark.line))
		return fail_at(b, GPUQ_EINVAL, line, col,
			       "not valid YAML: the line is indented with a tab; use spaces");
	if (p->context && p->context_mark.line + 1 != line)
		return fail_at(b, GPUQ_EINVAL, line, col,
			       "not valid YAML: %s %s (begun at line %zu)", p->problem, p->context,
			       p->context_mark.line + 1);
	return fail_at(b, GPUQ_EINVAL, line, col, "not valid YAML: %s", p->problem);
}

/* Put a finished or opened value where it belongs. */
static int place(struct builder *b, struct gpuq_val *v)
{
	struct level *l = b->depth ? &b->levels[b->depth - 1] : NULL;

	if (!v)
		return no_memory(b);
	if (!l) {
		b->root = v;
		return 0;
	}
	if (l->v->type == GPUQ_LIST)
		return gpuq_add(b->a, l->v, v) ? 0 : no_memory(b);
	if (l->merging) {
		l->key = NULL;
		l->merging = false;
		return gpuq_add(b->a, l->merge, v) ? 0 : no_memory(b);
	}
	if (!gpuq_put(b->a, l->v, l->key, v))
		return no_memory(b);
	l->v->pairs[l->v->n - 1].at = l->key_at;
	l->key = NULL;
	return 0;
}

static bool key_expected(const struct builder *b)
{
	const struct level *l = b->depth ? &b->levels[b->depth - 1] : NULL;

	return l && l->v->type == GPUQ_MAP && !l->key;
}

/* Remember what an anchor names. It belongs to the value that follows; keys have none. */
static int on_anchor(struct builder *b, const yaml_char_t *name, struct gpuq_val *v)
{
	if (!name || !b->kube || !v)
		return 0;
	return yaml_anchor_set(&b->anchors, b->a, (const char *)name, v) ? 0 : no_memory(b);
}

static int check_node(struct builder *b, const yaml_event_t *e, const yaml_char_t *tag)
{
	if (tag)
		return FAIL_EVENT(b, e, GPUQ_EINVAL, "the tag %.60s is not supported: omit it",
				  (const char *)tag);
	if (++b->nodes > b->nodes_max)
		return FAIL_EVENT(b, e, GPUQ_ETOOBIG, "more than %zu values", b->nodes_max);
	return 0;
}

static int on_key(struct builder *b, const yaml_event_t *e, const char *s, size_t n, bool plain)
{
	struct level *l = &b->levels[b->depth - 1];

	if (plain && strcmp(s, "<<") == 0 && !b->kube)
		return FAIL_EVENT(b, e, GPUQ_EINVAL,
				  "merge keys (<<) are not supported; write the keys out");
	l->merging = plain && strcmp(s, "<<") == 0;
	if (l->merging && !l->merge) {
		l->merge = gpuq_list(b->a);
		if (!l->merge)
			return no_memory(b);
	}
	l->key = gpuq_arena_strndup(b->a, s, n);
	l->key_at = mark(e);
	return l->key ? 0 : no_memory(b);
}

static struct gpuq_val *plain_value(struct builder *b, const yaml_event_t *e, const char *s,
				    size_t n, int *rc)
{
	struct yaml_plain p;
	const char *refused = yaml_plain_resolve(s, n, &p);

	/* In a manifest 0755 is octal; whether this is one is known at its end. */
	if (refused && b->kube && yaml_plain_octal(s, &p)) {
		if (!b->octal_at.line) {
			b->octal_at = mark(e);
			b->octal = gpuq_arena_printf(b->a, "'%.60s' %s", s, refused);
		}
		return gpuq_int(b->a, p.i);
	}
	if (refused) {
		*rc = FAIL_EVENT(b, e, GPUQ_EINVAL, "'%.60s' %s", s, refused);
		return NULL;
	}
	switch (p.type) {
	case GPUQ_NULL:
		return gpuq_null(b->a);
	case GPUQ_BOOL:
		return gpuq_bool(b->a, p.i != 0);
	case GPUQ_INT:
		return gpuq_int(b->a, p.i);
	case GPUQ_REAL:
		return gpuq_real(b->a, p.d);
	default:
		return gpuq_strn(b->a, s, n);
	}
}

static int on_scalar(struct builder *b, const yaml_event_t *e)
{
	const char *s = (const char *)e->data.scalar.value;
	const size_t n = e->data.scalar.length;
	const bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct gpuq_val *v;
	int rc = check_node(b, e, e->data.scalar.tag);

	if (rc < 0)
		return rc;
	if (memchr(s, '\0', n))
		return FAIL_EVENT(b, e, GPUQ_EINVAL, "a string holds the character NUL (\\0)");
	if (key_expected(b))
		return on_key(b, e, s, n, plain);
	v = plain ? plain_value(b, e, s, n, &rc) : gpuq_strn(b->a, s, n);
	if (!v)
		return rc < 0 ? rc : no_memory(b);
	v->plain = plain;
	v->at = mark(e);
	v->src = v->type == GPUQ_STR ? v->s : gpuq_arena_strndup(b->a, s, n);
	if (!v->src)
		return no_memory(b);
	rc = on_anchor(b, e->data.scalar.anchor, v);
	return rc < 0 ? rc : place(b, v);
}

static int on_open(struct builder *b, const yaml_event_t *e, const yaml_char_t *tag,
		   const yaml_char_t *anchor, struct gpuq_val *v)
{
	int rc = check_node(b, e, tag);

	if (rc < 0)
		return rc;
	if (key_expected(b))
		return FAIL_EVENT(b, e, GPUQ_EINVAL, "a key must be text, not %s",
				  gpuq_type_name(v ? v->type : GPUQ_MAP));
	if (b->depth == GPUQ_YAML_DEPTH_MAX)
		return FAIL_EVENT(b, e, GPUQ_EINVAL, "nested deeper than %u levels",
				  GPUQ_YAML_DEPTH_MAX);
	rc = on_anchor(b, anchor, v);
	if (rc == 0)
		rc = place(b, v);
	if (rc < 0)
		return rc;
	v->at = mark(e);
	b->levels[b->depth++] = (struct level){ .v = v };
	return 0;
}

/* Put a copy of the anchor's value where the alias stands. */
static int on_alias(struct builder *b, const yaml_event_t *e)
{
	const char *name = (const char *)e->data.alias.anchor;
	struct gpuq_val *v;
	unsigned levels;

	if (!b->kube)
		return FAIL_EVENT(b, e, GPUQ_EINVAL,
				  "aliases (*%.60s) are not supported; write the value out", name);
	if (key_expected(b))
		return FAIL_EVENT(b, e, GPUQ_EINVAL, "a key must be text, not an alias");
	if (++b->anchors.aliases > GPUQ_YAML_ALIASES_MAX)
		return FAIL_EVENT(b, e, GPUQ_ETOOBIG, "more than %u aliases",
				  GPUQ_YAML_ALIASES_MAX);
	v = yaml_anchor_get(&b->anchors, name);
	if (!v)
		return FAIL_EVENT(b, e, GPUQ_EINVAL,
				  "no value above is named &%.60s in this document", name);
	for (unsigned i = 0; i < b->depth; i++)
		if (b->levels[i].v == v)
			return FAIL_EVENT(b, e, GPUQ_EINVAL, "the alias *%.60s contains itself",
					  name);
	b->nodes += yaml_size(v, &levels);
	if (b->nodes > b->nodes_max)
		return FAIL_EVENT(b, e, GPUQ_ETOOBIG, "more than %zu values, aliases written out",
				  b->nodes_max);
	if (b->depth + levels > GPUQ_YAML_DEPTH_MAX)
		return FAIL_EVENT(b, e, GPUQ_EINVAL, "nested deeper than %u levels",
				  GPUQ_YAML_DEPTH_MAX);
	return place(b, gpuq_val_copy(b->a, v));
}

/* Carry out the << of a map whose own keys are all there. */
static int merge(struct builder *b, const struct level *l)
{
	for (uint32_t i = 0; l->merge && i < l->merge->n; i++) {
		const struct gpuq_val *from = l->merge->items[i];
		const int rc = yaml_merge(b->a, l->v, from);

		if (rc == GPUQ_ENOMEM)
			return no_memory(b);
		if (rc < 0)
			return fail_at(b, rc, l->key_at.line, l->key_at.col,
				       rc == GPUQ_ETOOBIG
					       ? "<<: merges more than %u keys"
					       : "<<: expected a map or a list of maps (at most "
						 "%u keys)",
				       GPUQ_MAP_MAX);
	}
	return 0;
}

static int on_close(struct builder *b)
{
	const struct level *l = &b->levels[--b->depth];
	const struct gpuq_val *v = l->v;
	const struct gpuq_pair *again;
	bool exhausted = false;

	if (v->type != GPUQ_MAP)
		return 0;
	again = gpuq_map_repeat(b->a, v, &exhausted);
	if (exhausted)
		return no_memory(b);
	if (!again)
		return merge(b, l);
	for (uint32_t i = 0; i < v->n; i++)
		if (strcmp(v->pairs[i].key, again->key) == 0)
			return fail_at(b, GPUQ_EINVAL, again->at.line, again->at.col,
				       "duplicate key '%.60s' (first at line %u)", again->key,
				       v->pairs[i].at.line);
	return GPUQ_EINTERNAL;
}

static int on_document_end(struct builder *b, const yaml_event_t *e)
{
	const struct gpuq_val *v = b->root;

	b->root = NULL;
	b->anchors.map = NULL;
	if (b->octal_at.line && !gpuq_get(v, "apiVersion"))
		return b->octal ? fail_at(b, GPUQ_EINVAL, b->octal_at.line, b->octal_at.col, "%s",
					  b->octal)
				: no_memory(b);
	b->octal_at.line = 0;
	if (v->type == GPUQ_NULL && v->plain && v->src[0] == '\0')
		return 0; /* nothing but comments between two --- */
	if (b->docs->n == GPUQ_DOCS_MAX)
		return FAIL_EVENT(b, e, GPUQ_ETOOBIG, "more than %u documents", GPUQ_DOCS_MAX);
	return gpuq_add(b->a, b->docs, (struct gpuq_val *)v) ? 0 : no_memory(b);
}

static int on_event(struct builder *b, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(b, e);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(b, e, e->data.sequence_start.tag, e->data.sequence_start.anchor,
			       gpuq_list(b->a));
	case YAML_MAPPING_START_EVENT:
		return on_open(b, e, e->data.mapping_start.tag, e->data.mapping_start.anchor,
			       gpuq_map(b->a));
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(b);
	case YAML_ALIAS_EVENT:
		return on_alias(b, e);
	case YAML_DOCUMENT_END_EVENT:
		return on_document_end(b, e);
	default:
		return 0;
	}
}

static int parse(struct builder *b)
{
	bool end = false;
	int rc = 0;

	while (rc == 0 && !end) {
		yaml_event_t e;

		if (!yaml_parser_parse(&b->parser, &e))
			return fail_syntax(b);
		end = e.type == YAML_STREAM_END_EVENT;
		rc = on_event(b, &e);
		yaml_event_delete(&e);
	}
	return rc;
}

static int read_text(struct builder *b, size_t bytes_max, struct gpuq_val ***docs, size_t *n_docs)
{
	int rc;

	if (strcmp(b->file, "-") == 0)
		b->file = "(standard input)";
	if (b->n > bytes_max)
		return gpuq_fail(b->err, GPUQ_ETOOBIG, "%s: larger than %zu bytes", b->file,
				 bytes_max);
	b->docs = gpuq_list(b->a);
	if (!b->docs || !yaml_parser_initialize(&b->parser))
		return no_memory(b);
	yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b->parser, (const unsigned char *)b->text, b->n);
	rc = parse(b);
	yaml_parser_delete(&b->parser);
	if (rc < 0)
		return rc;
	*docs = b->docs->items;
	*n_docs = b->docs->n;
	return 0;
}

int gpuq_yaml_parse_large(struct gpuq_arena *a, const char *file, const char *text, size_t n,
			  size_t bytes_max, size_t values_max, struct gpuq_val ***docs,
			  size_t *n_docs, struct gpuq_err *err)
{
	struct builder b = {
		.a = a, .file = file, .text = text, .n = n, .nodes_max = values_max, .err = err
	};

	return read_text(&b, bytes_max, docs, n_docs);
}

int gpuq_yaml_parse_jobs(struct gpuq_arena *a, const char *file, const char *text, size_t n,
			 struct gpuq_val ***docs, size_t *n_docs, struct gpuq_err *err)
{
	struct builder b = { .a = a,
			     .file = file,
			     .text = text,
			     .n = n,
			     .nodes_max = GPUQ_YAML_NODES_MAX,
			     .kube = true,
			     .err = err };

	return read_text(&b, GPUQ_YAML_BYTES_MAX, docs, n_docs);
}

int gpuq_yaml_parse(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		    struct gpuq_val ***docs, size_t *n_docs, struct gpuq_err *err)
{
	return gpuq_yaml_parse_large(a, file, text, n, GPUQ_YAML_BYTES_MAX, GPUQ_YAML_NODES_MAX,
				     docs, n_docs, err);
}
