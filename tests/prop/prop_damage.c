/* Random damage to a database file of several thousand records: bits, pages, ends of files, whole
 * files. The opened store holds every record as it was stored and continues to, or it is refused:
 * GPUQ_ECORRUPT, exit 74, or detected as a copy whose mark is newer. Never another result, a signal
 * or a hang. A file without damage is found whole, however it grew.
 *
 * prop_damage [CASES [SEED [FIRST]]] */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/read.h"

#define CASES 300
#define SEED 20261122
#define PAGE 4096u
#define KEYS 400u /* of a table, most of which exist */
#define VALUE_MAX 9000u
#define HANG_S 600 /* far beyond what a starved machine takes */
#define GROW_EVERY 20 /* cases */

enum verdict { WHOLE = 0, DAMAGED = STORE_EXIT_DAMAGED, COPY = 90, WRONG = 91, ODD = 92 };

static char dir[256];

/* ---- chance ---- */

static uint64_t random_next(uint64_t *r)
{
	uint64_t x = *r += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static size_t below(uint64_t *r, size_t n)
{
	return n ? (size_t)(random_next(r) % n) : 0;
}

/* ---- stored data: a function of table, key and version ---- */

static unsigned versions[N_TABLES][KEYS]; /* 0 = no such record */

static void fill(uint64_t *r, unsigned char *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = i % 8 ? (unsigned char)(out[i - 1] * 31 + 7)
			       : (unsigned char)random_next(r);
}

/* A spec has a script that some others share; the store keeps those in TABLE_TEXT. */
static size_t spec_of(uint64_t *r, unsigned char *out)
{
	static const char head[] = "\x82\xa1n\xd9\x08....0000\xa6script\xc5"; /* a map of two */
	const size_t at = sizeof(head) - 1;
	uint64_t script = below(r, 60);
	const size_t n = 600 + below(&script, 3000);

	memcpy(out, head, at);
	fill(r, out + 5, 8);
	out[at] = (unsigned char)(n >> 8);
	out[at + 1] = (unsigned char)n;
	fill(&script, out + at + 2, n);
	return at + 2 + n;
}

static size_t value_of(enum table t, unsigned key, unsigned version, unsigned char *out)
{
	uint64_t r = (uint64_t)t << 48 ^ (uint64_t)key << 24 ^ version;
	const size_t n = below(&r, 20) ? below(&r, 300) : below(&r, VALUE_MAX);

	if (t == TABLE_SPEC)
		return spec_of(&r, out);
	fill(&r, out, n);
	return n;
}

/* Return a table; the one that the store fills by itself is left out. */
static enum table some_table(uint64_t *r)
{
	const enum table t = (enum table)below(r, N_TABLES);

	return t == TABLE_TEXT ? TABLE_SPEC : t;
}

static size_t key_of(unsigned key, unsigned char *out)
{
	const size_t n = change_key_u32(out, key * 2654435761u);

	return key % 3 ? n : n + (size_t)sprintf((char *)out + n, "-key-%u", key);
}

static int write_some(struct store *st, uint64_t *r, size_t n, struct gpuq_err *err)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX], val[VALUE_MAX];
	struct batch b;
	int rc;

	change_batch_init(&b);
	for (size_t i = 0; i < n; i++) {
		const enum table t = some_table(r);
		const unsigned k = (unsigned)below(r, KEYS);
		const bool gone = below(r, 4) == 0;

		versions[t][k] = gone ? 0 : (unsigned)random_next(r) | 1;
		change_batch_put(&b, t, key, key_of(k, key), gone ? NULL : val,
				 gone ? 0 : value_of(t, k, versions[t][k], val));
	}
	rc = store_write_now(st, &b, err);
	change_batch_done(&b);
	return rc;
}

/* ---- the store, before and after ---- */

static void on_damaged(const struct gpuq_err *err)
{
	(void)err;
	_exit(DAMAGED);
}

static int open_it(struct store **st, struct gpuq_err *err)
{
	const struct store_opts o = {
		.map_bytes = 256 << 20, .unsafe_fs = true, .no_sync = true, .damaged = on_damaged
	};
	bool fresh;

	return store_open(dir, &o, st, &fresh, err);
}

struct tally {
	size_t n[N_TABLES];
	bool wrong;
};

static int compare(void *arg, enum table t, const unsigned char *key, size_t key_len,
		   const unsigned char *val, size_t val_len)
{
	unsigned char want[CHANGE_KEY_BYTES_MAX], text[VALUE_MAX];
	const unsigned word =
		(unsigned)key[0] << 24 | (unsigned)key[1] << 16 | (unsigned)key[2] << 8 | key[3];
	/* The inverse of the odd multiplier that spreads them. */
	const unsigned k = word * 244002641u;
	struct tally *x = arg;

	if (t == TABLE_TEXT)
		return 0;
	x->n[t]++;
	x->wrong |= k >= KEYS || key_of(k, want) != key_len || memcmp(want, key, key_len) != 0 ||
		    versions[t][k] == 0 || value_of(t, k, versions[t][k], text) != val_len ||
		    memcmp(text, val, val_len) != 0;
	return 0;
}

static bool all_there(const struct tally *x)
{
	for (int t = 0; t < N_TABLES; t++) {
		size_t n = 0;

		for (unsigned k = 0; k < KEYS; k++)
			n += versions[t][k] != 0;
		if (n != x->n[t])
			return false;
	}
	return !x->wrong;
}

static bool gets_are_right(struct store *st, uint64_t *r)
{
	for (int i = 0; i < 200; i++) {
		unsigned char key[CHANGE_KEY_BYTES_MAX], text[VALUE_MAX];
		const enum table t = some_table(r);
		const unsigned k = (unsigned)below(r, KEYS);
		struct gpuq_buf b = GPUQ_BUF_INIT;
		const int rc = store_get(st, t, key, key_of(k, key), &b, NULL);
		const size_t n = versions[t][k] ? value_of(t, k, versions[t][k], text) : 0;
		const bool right = versions[t][k]
					   ? rc == 0 && b.len == n &&
						     memcmp(b.data ? b.data : "", text, n) == 0
					   : rc == GPUQ_ENOENT;

		gpuq_buf_done(&b);
		if (!right)
			return false;
	}
	return true;
}

static int verdict_of(int rc)
{
	return rc == GPUQ_ECORRUPT ? DAMAGED : ODD;
}

static int read_all(struct store *st, uint64_t *r)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	enum table tables[N_TABLES];
	struct tally x = { .wrong = false };
	int rc;

	for (int t = 0; t < N_TABLES; t++)
		tables[t] = (enum table)t;
	rc = store_all(st, tables, N_TABLES, compare, &x, &err);
	if (rc < 0)
		return verdict_of(rc);
	return all_there(&x) && gets_are_right(st, r) ? WHOLE : WRONG;
}

/* Open, read, write and read again, twice. */
static int live(uint64_t seed)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = NULL;
	uint64_t r = seed;
	int rc, verdict = WHOLE;

	for (int turn = 0; turn < 2 && verdict == WHOLE; turn++) {
		rc = open_it(&st, &err);
		if (rc < 0)
			return verdict_of(rc);
		if (store_is_copy(st, NULL))
			return COPY;
		verdict = read_all(st, &r);
		for (int i = 0; i < 5 && verdict == WHOLE; i++)
			verdict = write_some(st, &r, 60, &err) == 0 ? WHOLE : ODD;
		if (verdict == WHOLE)
			verdict = read_all(st, &r);
		store_close(st);
	}
	return verdict;
}

/* Run an audit of the same file, as --audit does. */
static int audit(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = NULL;
	uint64_t r = 1;
	int rc = store_open_to_read(dir, &st, &err);
	int verdict;

	if (rc == 0)
		rc = store_audit(st, NULL, &err);
	verdict = rc < 0 ? verdict_of(rc) : read_all(st, &r);
	store_close(st);
	return verdict;
}

/* ---- files ---- */

struct bytes {
	unsigned char *p;
	size_t n;
};

static void file_path(char out[512], const char *name)
{
	snprintf(out, 512, "%s/%s", dir, name);
}

static struct bytes read_whole(const char *name)
{
	char path[512];
	struct bytes b = { NULL, 0 };
	struct stat st;
	int fd;

	file_path(path, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		abort();
	b.n = (size_t)st.st_size;
	b.p = malloc(b.n + 1);
	if (!b.p || pread(fd, b.p, b.n, 0) != (ssize_t)b.n)
		abort();
	close(fd);
	return b;
}

static void write_whole(const char *name, const struct bytes *b)
{
	char path[512];
	int fd;

	file_path(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || pwrite(fd, b->p, b->n, 0) != (ssize_t)b->n)
		abort();
	close(fd);
}

static void drop(const char *name)
{
	char path[512];

	file_path(path, name);
	unlink(path);
}

/* ---- damage ---- */

struct files {
	struct bytes data, mark;
	bool no_data, no_mark;
};

static struct bytes now, before, now_mark; /* now, of the same database, whole; before is older */

static void flip(struct bytes *b, size_t from, size_t n, uint64_t *r)
{
	const size_t at = from + below(r, n);

	if (at < b->n)
		b->p[at] ^= (unsigned char)(1u << below(r, 8));
}

static size_t some_page(const struct bytes *b, uint64_t *r)
{
	return below(r, b->n / PAGE);
}

static void d_bit(struct files *f, uint64_t *r)
{
	flip(&f->data, 0, f->data.n, r);
}

static void d_meta(struct files *f, uint64_t *r)
{
	flip(&f->data, PAGE * below(r, 2), 160, r);
}

static void d_head(struct files *f, uint64_t *r)
{
	flip(&f->data, PAGE * some_page(&f->data, r), below(r, 2) ? 16 : 80, r);
}

/* Damage the list of free pages, which begins at the root in a meta page. */
static void d_free(struct files *f, uint64_t *r)
{
	size_t root;

	memcpy(&root, f->data.p + PAGE * below(r, 2) + 16 + 24 + 40, sizeof(root));
	if (root < f->data.n / PAGE)
		flip(&f->data, root * PAGE, PAGE, r);
}

static void d_byte(struct files *f, uint64_t *r)
{
	const size_t at = below(r, f->data.n);

	f->data.p[at] = (unsigned char)random_next(r);
}

static void d_zero(struct files *f, uint64_t *r)
{
	memset(f->data.p + PAGE * some_page(&f->data, r), 0, PAGE);
}

static void d_garble(struct files *f, uint64_t *r)
{
	unsigned char *p = f->data.p + PAGE * some_page(&f->data, r);

	for (size_t i = 0; i < PAGE; i++)
		p[i] = (unsigned char)random_next(r);
}

static void d_swap(struct files *f, uint64_t *r)
{
	unsigned char hold[PAGE], *a = f->data.p + PAGE * some_page(&f->data, r),
				  *b = f->data.p + PAGE * some_page(&f->data, r);

	if (a == b)
		return;
	memcpy(hold, a, PAGE);
	memcpy(a, b, PAGE);
	memcpy(b, hold, PAGE);
}

static void d_stale(struct files *f, uint64_t *r)
{
	const size_t at = PAGE * below(r, (before.n < f->data.n ? before.n : f->data.n) / PAGE);

	memcpy(f->data.p + at, before.p + at, PAGE);
}

static void d_stale_sector(struct files *f, uint64_t *r)
{
	const size_t at = 512 * below(r, (before.n < f->data.n ? before.n : f->data.n) / 512);

	memcpy(f->data.p + at, before.p + at, 512);
}

static void d_zero_sector(struct files *f, uint64_t *r)
{
	memset(f->data.p + 512 * below(r, f->data.n / 512), 0, 512);
}

/* Copy a page over another, with its page number corrected. */
static void d_misplaced(struct files *f, uint64_t *r)
{
	const size_t from = some_page(&f->data, r), to = some_page(&f->data, r);

	if (from == to)
		return;
	memcpy(f->data.p + PAGE * to, f->data.p + PAGE * from, PAGE);
	if (below(r, 2))
		memcpy(f->data.p + PAGE * to, &to, sizeof(to));
}

static void d_shorter(struct files *f, uint64_t *r)
{
	f->data.n = below(r, 3) ? PAGE * some_page(&f->data, r) : below(r, f->data.n);
}

static void d_longer(struct files *f, uint64_t *r)
{
	const size_t more = 1 + below(r, 20 * PAGE);
	unsigned char *p = realloc(f->data.p, f->data.n + more);

	if (!p)
		abort();
	f->data.p = p;
	for (size_t i = 0; i < more; i++)
		p[f->data.n + i] = (unsigned char)random_next(r);
	f->data.n += more;
}

static void d_empty(struct files *f, uint64_t *r)
{
	(void)r;
	f->data.n = 0;
}

static void d_missing(struct files *f, uint64_t *r)
{
	(void)r;
	f->no_data = true;
}

static void d_no_mark(struct files *f, uint64_t *r)
{
	(void)r;
	f->no_mark = true;
}

static void d_mark(struct files *f, uint64_t *r)
{
	flip(&f->mark, 0, f->mark.n, r);
}

/* Replace the whole file by its state some batches ago. */
static void d_older(struct files *f, uint64_t *r)
{
	(void)r;
	if (before.n > f->data.n)
		return;
	memcpy(f->data.p, before.p, before.n);
	f->data.n = before.n;
}

static const struct {
	const char *name;
	void (*do_it)(struct files *f, uint64_t *r);
	int weight;
} kinds[] = {
	{ "bit", d_bit, 6 },
	{ "meta", d_meta, 4 },
	{ "head", d_head, 4 },
	{ "free", d_free, 3 },
	{ "byte", d_byte, 2 },
	{ "zero", d_zero, 3 },
	{ "garble", d_garble, 3 },
	{ "swap", d_swap, 2 },
	{ "stale", d_stale, 6 },
	{ "stale_sector", d_stale_sector, 3 },
	{ "zero_sector", d_zero_sector, 2 },
	{ "misplaced", d_misplaced, 3 },
	{ "shorter", d_shorter, 3 },
	{ "longer", d_longer, 1 },
	{ "empty", d_empty, 1 },
	{ "missing", d_missing, 1 },
	{ "no_mark", d_no_mark, 1 },
	{ "mark", d_mark, 1 },
	{ "older", d_older, 1 },
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int some_kind(uint64_t *r)
{
	int sum = 0, at;

	for (int i = 0; i < N_KINDS; i++)
		sum += kinds[i].weight;
	at = (int)below(r, (size_t)sum);
	for (int i = 0; i < N_KINDS; i++) {
		at -= kinds[i].weight;
		if (at < 0)
			return i;
	}
	return 0;
}

/* ---- a file without damage ---- */

static int write_long(struct store *st, uint64_t *r, size_t n, struct gpuq_err *err)
{
	const enum table t = some_table(r);
	const size_t most = below(r, 2) ? 200 : below(r, 200000);
	unsigned char key[CHANGE_KEY_BYTES_MAX], *val = calloc(most + 1, 1);
	struct batch b;
	int rc;

	if (!val)
		abort();
	change_batch_init(&b);
	for (size_t i = 0; i < n; i++) {
		const size_t len =
			change_key_u32(key, (uint32_t)below(r, 3000)) + below(r, 2) * below(r, 240);

		memset(key + 4, 'k', len - 4);
		change_batch_put(&b, t, key, len, below(r, 3) ? val : NULL, below(r, most));
	}
	rc = store_write_now(st, &b, err);
	change_batch_done(&b);
	free(val);
	return rc;
}

/* Batches of any size, emptied tables, reopened: an audit must find all of it whole. */
static int grow(uint64_t seed)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = NULL;
	uint64_t r = seed;
	int rc = 0;

	drop("data.mdb");
	drop("mark");
	drop("lock.mdb");
	for (int turn = 0; turn < 8 && rc == 0; turn++) {
		rc = open_it(&st, &err);
		for (size_t i = below(&r, 30); i && rc == 0; i--)
			rc = write_long(st, &r, 1 + below(&r, below(&r, 8) ? 20 : 600), &err);
		if (rc == 0 && below(&r, 3) == 0)
			rc = store_clear(st, TABLE_PAST, &err);
		store_close(st);
		st = NULL;
		if (rc == 0)
			rc = store_open_to_read(dir, &st, &err);
		if (rc == 0)
			rc = store_audit(st, NULL, &err);
		store_close(st);
		st = NULL;
	}
	if (rc < 0)
		printf("whole, and taken for damaged: %s\n", err.text);
	fflush(stdout);
	return rc < 0 ? WRONG : WHOLE;
}

/* ---- a case ---- */

static int in_child(int (*fn)(uint64_t), uint64_t seed)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(HANG_S);
		_exit(fn(seed));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static int audit_it(uint64_t seed)
{
	(void)seed;
	return audit();
}

static bool is_fine(int verdict)
{
	return verdict == WHOLE || verdict == DAMAGED || verdict == COPY;
}

struct sums {
	size_t whole, damaged, copies, bad;
	size_t by_kind[N_KINDS][3];
};

static void run_case(uint64_t seed, size_t number, struct sums *out)
{
	struct files f = { .data = { malloc(now.n), now.n },
			   .mark = { malloc(now_mark.n), now_mark.n } };
	uint64_t r = seed + number * UINT64_C(0x632be59bd9b4e019);
	const size_t n = below(&r, 4) ? 1 : 1 + below(&r, 3);
	int lived, audited, kind = 0;
	char names[128] = "";

	if (!f.data.p || !f.mark.p)
		abort();
	memcpy(f.data.p, now.p, now.n);
	memcpy(f.mark.p, now_mark.p, now_mark.n);
	for (size_t i = 0; i < n && f.data.n >= PAGE; i++) {
		kind = some_kind(&r);
		kinds[kind].do_it(&f, &r);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
			 kinds[kind].name);
	}
	drop("data.mdb");
	drop("mark");
	drop("lock.mdb");
	if (!f.no_data)
		write_whole("data.mdb", &f.data);
	/* If nothing at all is left, nothing shows that there was a database. */
	if (!f.no_mark || f.no_data || f.data.n == 0)
		write_whole("mark", &f.mark);
	audited = in_child(audit_it, 0);
	lived = in_child(live, seed + number);
	out->whole += lived == WHOLE;
	out->damaged += lived == DAMAGED;
	out->copies += lived == COPY;
	if (n == 1 && is_fine(lived))
		out->by_kind[kind][lived == WHOLE ? 0 : lived == DAMAGED ? 1 : 2]++;
	/* An audit does not read the mark: a copy is whole, of an earlier time. */
	if (!is_fine(lived) ||
	    (lived != COPY && (!is_fine(audited) || (audited == DAMAGED) != (lived == DAMAGED)))) {
		out->bad++;
		printf("case %zu:%s: open %d, audit %d\n", number, names, lived, audited);
	}
	free(f.data.p);
	free(f.mark.p);
}

/* ---- the database ---- */

static void make_it(uint64_t seed)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = NULL;
	uint64_t r = seed;
	int rc = open_it(&st, &err);

	for (int i = 0; rc == 0 && i < 60; i++) {
		rc = write_some(st, &r, 400, &err);
		if (i == 53) {
			before = read_whole("data.mdb");
		}
	}
	if (rc < 0) {
		fprintf(stderr, "prop_damage: %s\n", err.text);
		exit(1);
	}
	store_close(st);
	now = read_whole("data.mdb");
	now_mark = read_whole("mark");
}

int main(int argc, char **argv)
{
	const size_t cases = argc > 1 ? strtoul(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;
	const size_t start = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	const char *tmp = getenv("TMPDIR");
	struct sums sums = { .bad = 0 };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_init(LOG_L_ERR);
	snprintf(dir, sizeof(dir), "%.200s/gpuq-damage.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return 1;
	make_it(seed);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	for (size_t i = start; i < start + cases; i++)
		run_case(seed, i, &sums);
	for (size_t i = start; i < start + cases; i += GROW_EVERY) {
		const int grown = in_child(grow, seed + i);

		if (grown != WHOLE)
			printf("file %zu that grew: %d\n", i, grown);
		sums.bad += grown != WHOLE;
	}
	drop("data.mdb");
	drop("mark");
	drop("lock.mdb");
	drop("gpuqd.lock");
	drop("ballast");
	rmdir(dir);
	printf("%zu cases of a file of %zu pages: %zu whole, %zu damaged, %zu known as copies, %zu "
	       "WRONG\n",
	       cases, now.n / PAGE, sums.whole, sums.damaged, sums.copies, sums.bad);
	for (int i = 0; i < N_KINDS; i++)
		printf("  %-14s whole %zu, damaged %zu, copies %zu\n", kinds[i].name,
		       sums.by_kind[i][0], sums.by_kind[i][1], sums.by_kind[i][2]);
	free(now.p);
	free(before.p);
	free(now_mark.p);
	return sums.bad != 0;
}
