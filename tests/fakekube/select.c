#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum op { OP_IN, OP_NOT_IN, OP_EXISTS, OP_NOT_EXISTS };

struct term {
	struct term *next;
	bool field;
	enum op op;
	char *key;
	char **values;
	size_t n_values;
};

struct selector {
	struct term *terms;
};

/* The field selectors of a type, and how their value is read. */
static const char *field_value(const struct version *v, const char *key)
{
	const struct facts *f = v->facts;
	const struct {
		const char *key, *value;
	} fields[] = {
		{ "metadata.name", f->name },
		{ "metadata.namespace", f->ns },
		{ "spec.nodeName", f->pod.node },
		{ "spec.restartPolicy", f->pod.restart_policy },
		{ "spec.schedulerName", f->pod.scheduler },
		{ "spec.serviceAccountName", f->pod.service_account },
		{ "status.phase", phase_text(v->phase) },
		{ "status.podIP", v->pod_ip },
		{ "spec.unschedulable", f->unschedulable ? "true" : "false" },
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (strcmp(fields[i].key, key) == 0)
			return fields[i].value ? fields[i].value : "";
	}
	return "";
}

static bool field_known(const struct kind *kind, const char *key)
{
	static const char *const pods[] = { "spec.nodeName",      "spec.restartPolicy",
					    "spec.schedulerName", "spec.serviceAccountName",
					    "status.phase",       "status.podIP" };

	if (strcmp(key, "metadata.name") == 0)
		return true;
	if (strcmp(key, "metadata.namespace") == 0)
		return kind->namespaced;
	if (kind == &kinds[KIND_NODES])
		return strcmp(key, "spec.unschedulable") == 0;
	for (size_t i = 0; kind == &kinds[KIND_PODS] && i < ARRAY_LEN(pods); i++) {
		if (strcmp(key, pods[i]) == 0)
			return true;
	}
	return false;
}

static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t");
	for (end = s + strlen(s); end > s && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = '\0';
	return s;
}

static void add_value(struct term *t, const char *value)
{
	t->values = xrealloc(t->values, (t->n_values + 1) * sizeof(*t->values));
	t->values[t->n_values++] = xstrdup(value);
}

/* "k in (a,b)": the values between the parentheses. */
static int parse_set(struct term *t, char *rest)
{
	char *save = NULL, *end;

	rest = trim(rest);
	end = strchr(rest, ')');
	if (*rest != '(' || !end || end[1] != '\0')
		return -1;
	*end = '\0';
	for (char *v = strtok_r(rest + 1, ",", &save); v; v = strtok_r(NULL, ",", &save))
		add_value(t, trim(v));
	return t->n_values ? 0 : -1;
}

static int parse_label_term(struct term *t, char *s)
{
	char *eq, *sp;

	if (*s == '!') {
		t->op = OP_NOT_EXISTS;
		t->key = xstrdup(trim(s + 1));
		return *t->key ? 0 : -1;
	}
	eq = strchr(s, '=');
	sp = strchr(s, ' ');
	if (eq && !strchr(s, '(')) {
		char *value = eq + 1;

		t->op = eq > s && eq[-1] == '!' ? OP_NOT_IN : OP_IN;
		if (t->op == OP_NOT_IN)
			eq[-1] = '\0';
		*eq = '\0';
		if (*value == '=')
			value++;
		t->key = xstrdup(trim(s));
		add_value(t, trim(value));
		return *t->key && !strpbrk(t->values[0], " =!") ? 0 : -1;
	}
	if (sp) {
		*sp++ = '\0';
		sp += strspn(sp, " ");
		t->key = xstrdup(s);
		if (strncmp(sp, "in", 2) == 0 && (sp[2] == ' ' || sp[2] == '(')) {
			t->op = OP_IN;
			return parse_set(t, sp + 2);
		}
		if (strncmp(sp, "notin", 5) == 0 && (sp[5] == ' ' || sp[5] == '(')) {
			t->op = OP_NOT_IN;
			return parse_set(t, sp + 5);
		}
		return -1;
	}
	t->op = OP_EXISTS;
	t->key = xstrdup(s);
	return *t->key ? 0 : -1;
}

static int parse_field_term(struct term *t, char *s)
{
	char *eq = strchr(s, '=');
	char *value = eq ? eq + 1 : NULL;

	if (!eq || eq == s)
		return -1;
	t->field = true;
	t->op = eq[-1] == '!' ? OP_NOT_IN : OP_IN;
	if (t->op == OP_NOT_IN)
		eq[-1] = '\0';
	*eq = '\0';
	if (*value == '=')
		value++;
	t->key = xstrdup(trim(s));
	add_value(t, trim(value));
	return 0;
}

static void term_free(struct term *t)
{
	for (size_t i = 0; i < t->n_values; i++)
		free(t->values[i]);
	free(t->values);
	free(t->key);
	free(t);
}

void selector_free(struct selector *sel)
{
	struct term *next;

	if (!sel)
		return;
	for (struct term *t = sel->terms; t; t = next) {
		next = t->next;
		term_free(t);
	}
	free(sel);
}

static int parse_terms(struct selector *sel, const char *text, bool field)
{
	char *copy = xstrdup(text), *s = copy, *at = copy;
	int depth = 0, rc = 0;

	for (bool last = false; rc == 0 && !last; at++) {
		struct term *t;

		depth += (*at == '(') - (*at == ')');
		last = *at == '\0';
		if (!last && (*at != ',' || depth > 0))
			continue;
		*at = '\0';
		s = trim(s);
		if (*s) {
			t = xcalloc(1, sizeof(*t));
			rc = field ? parse_field_term(t, s) : parse_label_term(t, s);
			t->next = sel->terms;
			sel->terms = t;
		}
		s = at + 1;
	}
	free(copy);
	return rc;
}

int selector_parse(struct kind *kind, const char *labels, const char *fields, struct selector **sel,
		   char **why)
{
	struct selector *s;
	struct buf b = BUF_INIT;

	if ((!labels || !*labels) && (!fields || !*fields)) {
		*sel = NULL;
		return 0;
	}
	s = xcalloc(1, sizeof(*s));
	if (labels && parse_terms(s, labels, false) != 0) {
		buf_addf(&b, "unable to parse requirement: %s", labels);
		goto bad;
	}
	if (fields && parse_terms(s, fields, true) != 0) {
		buf_addf(&b, "invalid selector: '%s'; can't understand '%s'", fields, fields);
		goto bad;
	}
	for (const struct term *t = s->terms; t; t = t->next) {
		if (t->field && !field_known(kind, t->key)) {
			buf_addf(&b, "field label not supported: %s", t->key);
			goto bad;
		}
	}
	*sel = s;
	return 0;
bad:
	selector_free(s);
	*why = b.s;
	return -1;
}

static bool term_match(const struct term *t, const struct version *v)
{
	const char *have = t->field ? field_value(v, t->key) : version_label(v, t->key);

	switch (t->op) {
	case OP_EXISTS:
		return have;
	case OP_NOT_EXISTS:
		return !have;
	case OP_IN:
	case OP_NOT_IN:
		break;
	}
	for (size_t i = 0; have && i < t->n_values; i++) {
		if (strcmp(have, t->values[i]) == 0)
			return t->op == OP_IN;
	}
	return t->op == OP_NOT_IN;
}

bool selector_match(const struct selector *sel, const struct version *v)
{
	if (!sel)
		return true;
	for (const struct term *t = sel->terms; t; t = t->next) {
		if (!term_match(t, v))
			return false;
	}
	return true;
}
