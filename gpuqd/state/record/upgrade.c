#include "gpuqd/state/record/upgrade.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/util/varint.h"
#include "libgpuq/grow.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/names.h"

/* ---- values ---- */

/* A record being read, and its converted form. */
struct conversion {
	struct rec in; /* a row of the old schema */
	struct gpuq_buf out; /* the same of the new one */
	uint32_t left; /* fields not read yet */
	uint32_t spec_bytes;
};

/* Copy the next value as it is. */
static void copy(struct conversion *c)
{
	const unsigned char *from = c->in.p;

	varint_skip(&c->in);
	if (!c->in.bad)
		gpuq_buf_add(&c->out, from, (size_t)(c->in.p - from));
}

/* Convert n values in a row into rows of that width. */
static void rows(struct conversion *c, uint32_t n, uint32_t width)
{
	c->in.bad |= n % width != 0;
	varint_array(&c->out, n / width);
	for (uint32_t i = 0; i < n && !c->in.bad; i++) {
		if (i % width == 0)
			varint_array(&c->out, width);
		copy(c);
	}
}

/* Convert seven fields, the number of ranges, and the ranges. */
static void array(struct conversion *c)
{
	const uint32_t n = rec_get_array(&c->in);

	if (n == 0) {
		varint_array(&c->out, 0);
		return;
	}
	if (n < 8) {
		c->in.bad = true;
		return;
	}
	varint_array(&c->out, 8);
	for (int i = 0; i < 7; i++)
		copy(c);
	varint_skip(&c->in);
	rows(c, n - 8, 3);
}

/* Convert a nominated placement: two members and two lists, of which older rows have none. */
static void promise(struct conversion *c)
{
	uint32_t n;

	if (rec_get_array(&c->in) == 0) {
		varint_array(&c->out, 0);
		return;
	}
	varint_array(&c->out, 4);
	copy(c);
	copy(c);
	rows(c, rec_get_array(&c->in), 2);
	n = rec_get_array(&c->in);
	c->in.bad |= n % 5 != 0;
	varint_array(&c->out, n / 5);
	for (uint32_t i = 0; i < n && !c->in.bad; i++) {
		if (i % 5 == 0)
			varint_array(&c->out, 7);
		copy(c);
		/* No pod had a choice of profiles, or of alternatives. */
		if (i % 5 == 4) {
			varint_str(&c->out, NULL);
			varint_int(&c->out, 0);
		}
	}
}

/* Fields of a record of schema 1, a letter for each:
 *	.	as it is; nil where the record ends before it
 *	l	a list as it is; an empty one where the record ends before it
 *	2 .. 6	a list of values, as rows of this many
 *	a, p	an array's waiting part; a promise
 *	+	not there: the size of the spec
 *	-	not there: zero
 *	~	not there: nil */
static const char node_fields[] = "..........234";
static const char pod_fields[] = "..............l.-~-";
static const char job_fields[] = "............+........................a64.....lp...l..l...l..2.-";

/* Convert one member of a row: '+' is the size of its spec, which is new; '.' and 'l' are as they
 * were; 'a' is the state of an array, 'p' a nominated placement; a digit is a list of rows with this
 * many members. Members that the old row lacks become empty. */
static void field(struct conversion *c, char kind)
{
	if (kind == '+') {
		varint_int(&c->out, c->spec_bytes);
		return;
	}
	if (kind == '-') {
		varint_int(&c->out, 0);
		return;
	}
	if (kind == '~') {
		varint_str(&c->out, NULL);
		return;
	}
	if (c->left == 0) {
		if (kind == '.')
			varint_str(&c->out, NULL);
		else
			varint_array(&c->out, 0);
		return;
	}
	c->left--;
	switch (kind) {
	case 'a':
		array(c);
		break;
	case 'p':
		promise(c);
		break;
	case '.':
	case 'l':
		copy(c);
		break;
	default:
		rows(c, rec_get_array(&c->in), (uint32_t)(kind - '0'));
	}
}

/* Convert a row by the kinds of its members. */
static void fields(struct conversion *c, const char *kinds)
{
	c->left = rec_get_array(&c->in);
	varint_array(&c->out, (uint32_t)strlen(kinds));
	for (; *kinds; kinds++)
		field(c, *kinds);
}

/* Copy a value that was read elsewhere, and go on where the input was. */
static void copy_from(struct conversion *c, struct rec from)
{
	const struct rec in = c->in;

	c->in = from;
	copy(c);
	from.bad = c->in.bad;
	c->in = in;
	c->in.bad |= from.bad;
}

/* Convert usage: used, billed and paid, the pods, then the other charges, which are one list
 * now. */
static void usage(struct conversion *c)
{
	const uint32_t n = rec_get_array(&c->in), n_heads = n < 4 ? n : 4;
	struct rec heads[4];

	for (uint32_t i = 0; i < n_heads; i++) {
		heads[i] = c->in;
		varint_skip(&c->in);
	}
	if (n == 0 || c->in.bad) {
		c->in.bad = true;
		return;
	}
	varint_array(&c->out, 4);
	varint_array(&c->out, 1 + n - n_heads);
	copy_from(c, heads[0]);
	for (uint32_t i = n_heads; i < n; i++)
		copy(c);
	/* Before there were factors all usage was billed. */
	copy_from(c, heads[n < 4 ? 0 : 1]);
	for (uint32_t i = 2; i < 4; i++)
		if (n < 4)
			varint_int(&c->out, 0);
		else
			copy_from(c, heads[i]);
}

/* Convert the charges of a pod of one day: four members, then rows. */
static void charges(struct conversion *c)
{
	const uint32_t n = rec_get_array(&c->in);

	if (n < 4) {
		c->in.bad = true;
		return;
	}
	varint_array(&c->out, 7);
	for (int i = 0; i < 4; i++)
		copy(c);
	rows(c, n - 4, 4);
	varint_array(&c->out, 0); /* other resources were not charged */
	varint_int(&c->out, ISOLATION_NO_DEVICES); /* nor was isolation recorded */
}

/* ---- rules of preemption, under their present names ---- */

/* Replace the words that earlier versions had for the rules of preemption, wherever an object of
 * history names one. */
static void rename_rules(struct gpuq_arena *a, struct gpuq_val *v)
{
	char now[128];

	for (uint32_t i = 0; v && v->type == GPUQ_LIST && i < v->n; i++)
		rename_rules(a, v->items[i]);
	for (uint32_t i = 0; v && v->type == GPUQ_MAP && i < v->n; i++) {
		struct gpuq_val *member = v->pairs[i].val;

		if (member && member->type == GPUQ_STR && strcmp(v->pairs[i].key, "rule") == 0) {
			gpuq_rules_now(member->s, now, sizeof(now));
			v->pairs[i].val = gpuq_str(a, now);
		} else {
			rename_rules(a, member);
		}
	}
}

/* True if the encoded object may name a rule. Most do not, and are copied without being decoded. */
static bool names_a_rule(const unsigned char *p, size_t n)
{
	static const char key[] = "\xa4rule"; /* in MessagePack */

	for (const unsigned char *end = p + n; (p = memchr(p, key[0], (size_t)(end - p))); p++)
		if ((size_t)(end - p) >= sizeof(key) && memcmp(p, key, sizeof(key) - 1) == 0)
			return true;
	return false;
}

/* Copy the object of a job, or an entry of its log: few were preempted. */
static void object(struct conversion *c)
{
	static const struct gpuq_mp_limits lim = { UINT32_MAX, GPUQ_MSG_DEPTH_MAX, UINT32_MAX };
	const size_t n = (size_t)(c->in.end - c->in.p);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v;

	if (!names_a_rule(c->in.p, n)) {
		gpuq_buf_add(&c->out, c->in.p, n);
		return;
	}
	c->in.bad = gpuq_mp_read(&a, &lim, c->in.p, n, &v, NULL) != 0;
	if (!c->in.bad) {
		rename_rules(&a, v);
		gpuq_mp_write(&c->out, v);
	}
	gpuq_arena_done(&a);
}

/* ---- facts that older jobs lack ---- */

/* Remember how large the spec of a job is: the row of a request tells it now. */
static int note_spec(struct upgrade *u, uint32_t id, size_t bytes)
{
	if (!grow_to(&u->specs, &u->room_specs, u->n_specs + 1))
		return -1;
	u->specs[u->n_specs++] = (struct upgrade_spec){ id, (uint32_t)bytes };
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct upgrade_spec *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Return that size; an element has no spec of its own. */
static uint32_t spec_bytes(const struct upgrade *u, uint32_t id, int64_t index)
{
	const struct upgrade_spec key = { id, 0 };
	const struct upgrade_spec *s =
		u->n_specs && index < 0 ? bsearch(&key, u->specs, u->n_specs, sizeof(key), by_id)
					: NULL;

	return s ? s->bytes : 0;
}

void upgrade_done(struct upgrade *u)
{
	free(u->specs);
	*u = (struct upgrade)UPGRADE_INIT;
}

/* ---- records ---- */

/* Write the key with the name of the cluster: before that of a node, at the end of all others. */
static size_t key_of(enum table t, const unsigned char *key, size_t n, unsigned char *out)
{
	static const char cluster[] = CLUSTER_DEFAULT;
	const bool first = t == TABLE_NODE, parts = t == TABLE_USAGE;
	char user[CHANGE_KEY_BYTES_MAX];
	size_t len = 0;

	if (first) {
		memcpy(out, cluster, sizeof(cluster)); /* with its NUL */
		len = sizeof(cluster);
	}
	memcpy(out + len, key, n);
	len += n;
	if (first)
		return len;
	if (parts)
		out[len++] = '\0';
	account_key_part(key, n, 1, user, sizeof(user));
	/* A grant to a queue belongs to no cluster. */
	return change_key_cluster(out, len, parts && !*user ? "" : cluster);
}

int upgrade_record(void *arg, unsigned from, enum table t, const unsigned char *key, size_t key_len,
		   const unsigned char *val, size_t val_len, struct batch *out,
		   struct gpuq_err *err)
{
	struct conversion c = { .in = { val, val + val_len, false }, .out = GPUQ_BUF_INIT };
	unsigned char new_key[CHANGE_KEY_BYTES_MAX + CLUSTER_BYTES_MAX + 2];
	struct upgrade *u = arg;
	int64_t index;
	uint32_t id;
	int rc = 0;

	if (from != 1)
		return gpuq_fail(err, GPUQ_EVERSION, "records of schema %u are not known", from);
	if (t == N_TABLES)
		return 0;
	if (key_len > CHANGE_KEY_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ECORRUPT, "a key of table %s is too long",
				 table_names[t]);
	switch (t) {
	case TABLE_NODE:
		fields(&c, node_fields);
		break;
	case TABLE_POD:
		fields(&c, pod_fields);
		break;
	case TABLE_USAGE:
		usage(&c);
		break;
	case TABLE_CHARGE:
		charges(&c);
		break;
	case TABLE_HISTORY:
	case TABLE_LOG:
		object(&c);
		break;
	case TABLE_BESIDE:
		gpuq_buf_add(&c.out, val, val_len);
		break;
	case TABLE_SPEC:
		if (key_len == 4 && note_spec(u, change_key_read_u32(key), val_len) < 0)
			return gpuq_no_memory(err);
		change_batch_put(out, t, key, key_len, val, val_len);
		return 0;
	case TABLE_JOB:
		if (change_key_job_read(key, key_len, &id, &index))
			c.spec_bytes = spec_bytes(u, id, index);
		fields(&c, job_fields);
		break;
	default:
		change_batch_put(out, t, key, key_len, val, val_len);
		return 0;
	}
	if (c.in.bad || c.out.failed)
		rc = gpuq_fail(err, c.out.failed ? GPUQ_ENOMEM : GPUQ_ECORRUPT,
			       "a record of table %s is incomplete", table_names[t]);
	else if (t == TABLE_JOB || t == TABLE_LOG)
		change_batch_put(out, t, key, key_len, c.out.data, c.out.len);
	else
		change_batch_put(out, t, new_key, key_of(t, key, key_len, new_key), c.out.data,
				 c.out.len);
	gpuq_buf_done(&c.out);
	return rc;
}
