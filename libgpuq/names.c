#include "libgpuq/names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *word, *letters;
	bool ended;
} job_states[] = {
#define X(sym, word, letters, ended, doc) { word, letters, ended },
	GPUQ_JOB_STATES(X)
#undef X
};

static const struct {
	const char *word, *who, *doc;
} reasons[] = {
#define X(sym, word, who, doc) { word, who, doc },
	GPUQ_REASONS(X)
#undef X
};

static const char *const units[] = {
#define X(sym, word) word,
	GPUQ_UNITS(X)
#undef X
};

static const char *const causes[] = {
#define X(sym, word) word,
	GPUQ_CAUSES(X)
#undef X
};

static const struct {
	const char *word, *before, *doc;
} rules[] = {
#define X(sym, word, before, doc) { word, before, doc },
	GPUQ_RULES(X)
#undef X
};

static const char *const pod_states[] = {
#define X(sym, word, doc) word,
	GPUQ_POD_STATES(X)
#undef X
};

static const char *const node_states[] = {
#define X(sym, word) word,
	GPUQ_NODE_STATES(X)
#undef X
};

const char *const gpuq_isolations[] = {
#define X(sym, word, doc) word,
	GPUQ_ISOLATIONS(X)
#undef X
		NULL
};

const char *const gpuq_spots[] = {
#define X(sym, word, doc) word,
	GPUQ_SPOTS(X)
#undef X
		NULL
};

const char *gpuq_isolation_word(enum gpuq_isolation i)
{
	return i < N_GPUQ_ISOLATIONS ? gpuq_isolations[i] : "?";
}

const char *gpuq_job_state_word(enum gpuq_job_state s)
{
	return s < N_GPUQ_JOB_STATES ? job_states[s].word : "?";
}

const char *gpuq_job_state_short(enum gpuq_job_state s)
{
	return s < N_GPUQ_JOB_STATES ? job_states[s].letters : "?";
}

bool gpuq_job_state_ended(enum gpuq_job_state s)
{
	return s < N_GPUQ_JOB_STATES && job_states[s].ended;
}

/* Lists parse a word for each of many jobs: most of the words differ in their first letter. */
static bool is_word(const char *a, const char *b)
{
	return ((*a ^ *b) & ~0x20) == 0 && strcasecmp(a, b) == 0;
}

int gpuq_job_state_parse(const char *word)
{
	for (int i = 0; i < N_GPUQ_JOB_STATES; i++)
		if (is_word(word, job_states[i].word) || is_word(word, job_states[i].letters))
			return i;
	return -1;
}

const char *gpuq_reason_word(enum gpuq_reason r)
{
	return r < N_GPUQ_REASONS ? reasons[r].word : "?";
}

const char *gpuq_reason_who(enum gpuq_reason r)
{
	return r < N_GPUQ_REASONS ? reasons[r].who : "?";
}

const char *gpuq_reason_doc(enum gpuq_reason r)
{
	return r < N_GPUQ_REASONS ? reasons[r].doc : "?";
}

const char *gpuq_reason_doc_of(const char *word)
{
	for (int i = 0; i < N_GPUQ_REASONS; i++)
		if (strcmp(word, reasons[i].word) == 0)
			return reasons[i].doc;
	return "";
}

const char *gpuq_unit_word(enum gpuq_unit u)
{
	return u < N_GPUQ_UNITS ? units[u] : "?";
}

const char *gpuq_cause_word(enum gpuq_cause c)
{
	return c < N_GPUQ_CAUSES ? causes[c] : "?";
}

const char *gpuq_rule_word(enum gpuq_rule r)
{
	return r < N_GPUQ_RULES ? rules[r].word : "?";
}

/* Return the index of the rule that is called so (n bytes), now or before; -1 for others. */
static int rule_find(const char *word, size_t n)
{
	for (int i = 0; i < N_GPUQ_RULES; i++)
		if ((strlen(rules[i].word) == n && memcmp(rules[i].word, word, n) == 0) ||
		    (n && strlen(rules[i].before) == n && memcmp(rules[i].before, word, n) == 0))
			return i;
	return -1;
}

const char *gpuq_rule_doc(const char *word)
{
	const int i = rule_find(word, strlen(word));

	return i < 0 ? word : rules[i].doc;
}

void gpuq_rules_now(const char *stored, char *out, size_t room)
{
	size_t at = 0;

	out[0] = '\0';
	for (const char *p = stored; *p && at < room;) {
		const size_t n = strcspn(p, "+");
		const int i = rule_find(p, n);
		const int len = i < 0 ? (int)n : (int)strlen(rules[i].word);

		at += (size_t)snprintf(out + at, room - at, "%s%.*s", at ? "+" : "", len,
				       i < 0 ? p : rules[i].word);
		p += n + (p[n] == '+');
	}
}

const char *gpuq_pod_state_word(enum gpuq_pod_state s)
{
	return s < N_GPUQ_POD_STATES ? pod_states[s] : "?";
}

const char *gpuq_node_state_word(enum gpuq_node_state s)
{
	return s < N_GPUQ_NODE_STATES ? node_states[s] : "?";
}
