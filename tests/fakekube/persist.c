#include "persist.h"
#include "audit.h"
#include "facts.h"
#include "list.h"
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void save_raw(FILE *f, const struct version *v)
{
	char *text = base64_encode(v->s, v->len);
	json_t *j = json_pack("{s:s,s:s,s:s,s:s,s:s}", "raw", text, "ns", v->facts->ns, "name",
			      v->facts->name, "uid", v->facts->uid, "node", v->facts->pod.node);

	json_dumpf(j, f, JSON_COMPACT);
	json_decref(j);
	free(text);
}

int persist_save(const char *path)
{
	struct buf tmp = BUF_INIT;
	json_t *head;
	FILE *f;
	int rc = -1;

	buf_addf(&tmp, "%s.new", path);
	f = fopen(tmp.s, "we");
	if (!f)
		goto out;
	head = json_pack("{s:i,s:I,s:o}", "fakekube", 1, "resourceVersion", (json_int_t)store_rv(),
			 "audit", audit_save());
	json_dumpf(head, f, JSON_COMPACT);
	fputc('\n', f);
	json_decref(head);
	for (size_t i = 0; i < KIND_COUNT; i++) {
		size_t n;
		struct version **all = list_sorted(&kinds[i], &n);

		for (size_t k = 0; k < n; k++) {
			struct buf b = BUF_INIT;

			version_text(all[k], &b);
			if (all[k]->raw)
				save_raw(f, all[k]);
			else
				fwrite(b.s, 1, b.len, f);
			fputc('\n', f);
			buf_done(&b);
		}
		free(all);
	}
	rc = ferror(f) ? -1 : 0;
	if (fclose(f) != 0 || rc != 0 || rename(tmp.s, path) != 0)
		rc = -1;
out:
	buf_done(&tmp);
	return rc;
}

static struct kind *kind_of(const json_t *j)
{
	const char *api = json_string_value(json_object_get(j, "apiVersion"));
	const char *name = json_string_value(json_object_get(j, "kind"));

	for (size_t i = 0; api && name && i < KIND_COUNT; i++) {
		if (strcmp(kinds[i].name, name) == 0 && strcmp(kinds[i].api_version, api) == 0)
			return &kinds[i];
	}
	return NULL;
}

static int load_raw(const json_t *j)
{
	const char *raw, *ns, *name, *uid, *node;
	struct facts *f;
	size_t len;
	char *text;

	if (json_unpack((json_t *)j, "{s:s,s:s,s:s,s:s,s:s}", "raw", &raw, "ns", &ns, "name", &name,
			"uid", &uid, "node", &node) != 0)
		return -1;
	text = base64_decode(raw, &len);
	if (!text)
		return -1;
	f = facts_bare(ns, name, uid);
	f->pod.node = arena_strdup(&f->mem, node);
	store_load(version_raw(&kinds[KIND_PODS], f, text, len, 1));
	free(text);
	return 0;
}

static int load_object(json_t *j)
{
	const char *rv = json_string_value(
		json_object_get(json_object_get(j, "metadata"), "resourceVersion"));
	struct kind *kind = kind_of(j);
	uint64_t n;

	if (json_object_get(j, "raw"))
		return load_raw(j);
	if (!kind || !rv || uint_parse(rv, &n) != 0)
		return -1;
	store_load(version_new(kind, j, n));
	return 0;
}

static int load_head(const json_t *j)
{
	const json_t *rv = json_object_get(j, "resourceVersion");

	if (json_integer_value(json_object_get(j, "fakekube")) != 1 || json_integer_value(rv) < 1)
		return -1;
	store_set_rv((uint64_t)json_integer_value(rv));
	audit_load(json_object_get(j, "audit"));
	return 0;
}

int persist_load(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t cap = 0, number = 0;
	char *line = NULL;
	ssize_t len;
	int rc = 1;

	if (!f && errno == ENOENT)
		return 0;
	if (!f) {
		perror(path);
		return -1;
	}
	while (rc > 0 && (len = getline(&line, &cap, f)) > 0) {
		json_t *j = json_loadb(line, (size_t)len, JSON_ALLOW_NUL, NULL);

		if (!j || (number == 0 ? load_head(j) : load_object(j)) != 0) {
			fprintf(stderr, "%s:%zu: not a line of a saved state\n", path, number + 1);
			rc = -1;
		}
		json_decref(j);
		number++;
	}
	if (rc > 0 && (ferror(f) || number == 0)) {
		fprintf(stderr, "%s: cannot be read to its end\n", path);
		rc = -1;
	}
	free(line);
	fclose(f);
	return rc;
}
