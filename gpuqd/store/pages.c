#include "gpuqd/store/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the format ---- */

#define MAGIC 0xBEEFC0DEu
#define DATA_VERSION 1u
#define PAGE_BYTES_MAX 65536u
#define DEPTH_MAX 32u /* LMDB's own stack of pages */
#define NO_PAGE SIZE_MAX
#define UNWRITTEN_MAX (2u << 17) /* pages that one transaction holds in memory, and double */
#define FIRST_PAGE 2u /* after the two meta pages */
#define FREE_FLAGS 0x08u /* integer keys */
#define NO_DIR_FLAG 0x4000u /* MDB_NOSUBDIR, which LMDB stores with them */

enum page_flag { P_BRANCH = 0x01, P_LEAF = 0x02, P_OVERFLOW = 0x04, P_META = 0x08 };
enum node_flag { N_BIG = 0x01, N_TREE = 0x02 };

struct page_head {
	size_t number;
	uint16_t pad, flags;
	union {
		struct {
			uint16_t lower, upper; /* of the space between offsets and nodes */
		};
		uint32_t n_pages; /* of an overflow */
	};
};

struct node {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint16_t lo, hi;
#else
	uint16_t hi, lo;
#endif
	uint16_t flags, key_len;
};

struct tree {
	uint32_t pad; /* of the free list's: bytes of a page */
	uint16_t flags, depth;
	size_t n_branch, n_leaf, n_overflow, n_records, root;
};

struct meta {
	uint32_t magic, version;
	void *address;
	size_t map_bytes;
	struct tree trees[2]; /* free list, tables */
	size_t last_page, txn;
};

struct pages {
	int fd;
	size_t page_bytes, n_file; /* whole pages of the file */
	struct meta meta; /* the newer one */
	unsigned char *used; /* a bit per page of the file */
};

static int damaged(struct gpuq_err *err, const char *table, size_t page, const char *what)
{
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "store: table %s is damaged: page %zu %s: keep the files and restore a "
			 "backup",
			 table, page, what);
}

/* ---- reading ---- */

static int read_at(const struct pages *p, void *out, size_t n, size_t page, struct gpuq_err *err)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(p->fd, (char *)out + done, n - done,
				  (off_t)(page * p->page_bytes + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return gpuq_fail(err, GPUQ_EIO, "store: page %zu: %s", page,
					 strerror(errno));
		if (r == 0)
			return gpuq_fail(err, GPUQ_ECORRUPT,
					 "store: the database file became shorter while it was "
					 "read: keep the files and restore a backup");
		done += (size_t)r;
	}
	return 0;
}

/* ---- meta pages ---- */

static int bad_meta(struct gpuq_err *err, int which, const char *what)
{
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "store: meta page %d is damaged: %s: keep the files and restore a backup",
			 which, what);
}

static const char *wrong_in_meta(const struct pages *p, const struct page_head *h,
				 const struct meta *m, int which)
{
	if (h->number != (size_t)which || h->flags != P_META)
		return "it has another page's head";
	if (m->magic != MAGIC || m->version != DATA_VERSION)
		return "magic number or version";
	if (m->trees[0].pad != p->page_bytes)
		return "size of a page";
	if ((m->trees[0].flags & ~NO_DIR_FLAG) != FREE_FLAGS || m->trees[1].flags != 0 ||
	    m->address)
		return "flags";
	return NULL;
}

/* Transactions write the two pages in turn, so their numbers are neighbours. */
static int read_metas(struct pages *p, struct gpuq_err *err)
{
	struct {
		struct page_head head;
		struct meta meta;
	} m[2];
	const char *wrong;

	for (int i = 0; i < 2; i++) {
		int rc = read_at(p, &m[i], sizeof(m[i]), (size_t)i, err);

		if (rc < 0)
			return rc;
		wrong = wrong_in_meta(p, &m[i].head, &m[i].meta, i);
		if (wrong)
			return bad_meta(err, i, wrong);
	}
	if (m[0].meta.txn == 0 && m[1].meta.txn == 0)
		return gpuq_fail(err, GPUQ_ENOENT, "store: nothing was ever stored there");
	for (int i = 0; i < 2; i++) {
		if (m[i].meta.txn % 2 != (size_t)i)
			return bad_meta(err, i, "number of the transaction");
		if (m[i].meta.txn == m[!i].meta.txn + 1)
			p->meta = m[i].meta;
	}
	if (p->meta.txn == 0)
		return bad_meta(err, m[0].meta.txn < m[1].meta.txn, "number of the transaction");
	return 0;
}

/* The size of a page is in the first meta page; it must be right before the second can be
 * found. */
static int read_page_size(struct pages *p, size_t file_bytes, struct gpuq_err *err)
{
	struct {
		struct page_head head;
		struct meta meta;
	} first;
	int rc;

	p->page_bytes = sizeof(first);
	if (file_bytes < sizeof(first))
		return bad_meta(err, 0, "the file ends in it");
	rc = read_at(p, &first, sizeof(first), 0, err);
	if (rc < 0)
		return rc;
	p->page_bytes = first.meta.trees[0].pad;
	if (p->page_bytes < 512 || p->page_bytes > PAGE_BYTES_MAX ||
	    (p->page_bytes & (p->page_bytes - 1)))
		return bad_meta(err, 0, "size of a page");
	if (file_bytes < 2 * p->page_bytes)
		return bad_meta(err, 1, "the file ends before it");
	return 0;
}

int pages_open(int fd, struct pages **out, struct gpuq_err *err)
{
	struct pages *p = calloc(1, sizeof(*p));
	struct stat st;
	int rc = 0;

	if (!p)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	p->fd = fd;
	if (fstat(fd, &st) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "store: %s", strerror(errno));
	else if (st.st_size == 0)
		rc = gpuq_fail(err, GPUQ_ENOENT, "store: the database file is empty");
	if (rc == 0)
		rc = read_page_size(p, (size_t)st.st_size, err);
	if (rc == 0)
		rc = read_metas(p, err);
	if (rc == 0) {
		p->n_file = (size_t)st.st_size / p->page_bytes;
		if (p->meta.last_page >= p->n_file &&
		    p->meta.last_page - p->n_file >= UNWRITTEN_MAX)
			rc = bad_meta(err, (int)(p->meta.txn % 2), "number of the last page");
	}
	if (rc == 0) {
		p->used = calloc(p->n_file / 8 + 1, 1);
		if (!p->used)
			rc = gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	}
	if (rc < 0) {
		pages_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

void pages_close(struct pages *p)
{
	if (!p)
		return;
	free(p->used);
	free(p);
}

void pages_forget(struct pages *p)
{
	memset(p->used, 0, p->n_file / 8 + 1);
}

uint64_t pages_txn(const struct pages *p)
{
	return p->meta.txn;
}

uint64_t pages_bytes(const struct pages *p)
{
	const size_t n = p->meta.last_page + 1;

	return (uint64_t)(n < p->n_file ? n : p->n_file) * p->page_bytes;
}

/* ---- a walk through a tree ---- */

struct key {
	const unsigned char *p; /* NULL = no bound */
	size_t n;
};

struct walk {
	struct pages *p;
	const struct pages_tree *tree;
	bool numbers; /* keys are numbers of this machine */
	pages_record_fn fn;
	void *arg;
	struct gpuq_err *err;
	unsigned char *pages; /* one for each level */
	unsigned char *big; /* a value of its own pages */
	size_t big_room;
	size_t n_branch, n_leaf, n_overflow, n_records;
	int node_flags; /* that a leaf's nodes may have */
};

static int compare(const struct walk *w, const struct key *a, const struct key *b)
{
	const size_t n = a->n < b->n ? a->n : b->n;
	int c;

	if (w->numbers) {
		size_t x, y;

		memcpy(&x, a->p, sizeof(x));
		memcpy(&y, b->p, sizeof(y));
		return x < y ? -1 : x > y;
	}
	c = memcmp(a->p, b->p, n);
	return c ? c : (a->n > b->n) - (a->n < b->n);
}

static int bad(const struct walk *w, size_t page, const char *what)
{
	return damaged(w->err, w->tree->name, page, what);
}

/* Note n pages from first on as used; false when one is already, or outside the file. */
static bool use(struct pages *p, size_t first, size_t n)
{
	if (first < FIRST_PAGE || n > p->n_file || first > p->n_file - n ||
	    n > p->meta.last_page + 1 || first > p->meta.last_page + 1 - n)
		return false;
	for (size_t i = first; i < first + n; i++) {
		const unsigned char bit = (unsigned char)(1u << i % 8);

		/* Trees are walked on several threads, and meet only where one is damaged. */
		if (__atomic_fetch_or(&p->used[i / 8], bit, __ATOMIC_RELAXED) & bit)
			return false;
	}
	return true;
}

static const struct node *node_at(const unsigned char *page, size_t i)
{
	uint16_t offset;

	memcpy(&offset, page + sizeof(struct page_head) + 2 * i, 2);
	return (const struct node *)(const void *)(page + offset);
}

static size_t data_len(const struct node *n)
{
	return (size_t)n->lo | (size_t)n->hi << 16;
}

static size_t child_of(const struct node *n)
{
	size_t page = data_len(n);

#if SIZE_MAX > UINT32_MAX
	page |= (size_t)n->flags << 32;
#endif
	return page;
}

/* All nodes lie between upper and the end of the page, and fill that. */
static const char *wrong_in_nodes(const struct walk *w, const unsigned char *page, size_t n)
{
	const struct page_head *h = (const void *)page;
	const size_t end = w->p->page_bytes;
	const bool leaf = h->flags == P_LEAF;
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const struct node *x;
		uint16_t offset;
		size_t len;

		memcpy(&offset, page + sizeof(*h) + 2 * i, 2);
		if (offset < h->upper || offset > end - sizeof(*x) || offset % 2)
			return "has a node outside of it";
		x = node_at(page, i);
		len = sizeof(*x) + x->key_len;
		if (leaf)
			len += x->flags & N_BIG ? sizeof(size_t) : data_len(x);
		if (len > end - offset)
			return "has a node that is longer than it";
		if (leaf && (x->flags & ~(unsigned)w->node_flags))
			return "has a node of another kind";
		if ((leaf || i > 0) && (w->numbers ? x->key_len != sizeof(size_t) : !x->key_len))
			return "has a key of another kind";
		sum += (len + 1) & ~(size_t)1;
	}
	return sum == end - h->upper ? NULL : "is not filled by its nodes";
}

static int load_page(struct walk *w, unsigned char *page, size_t number, unsigned level, size_t *n)
{
	const struct page_head *h = (const void *)page;
	const unsigned kind = level == w->tree->depth ? P_LEAF : P_BRANCH;
	const char *wrong;
	int rc;

	if (!use(w->p, number, 1))
		return bad(w, number, "is outside of the file or used twice");
	rc = read_at(w->p, page, w->p->page_bytes, number, w->err);
	if (rc < 0)
		return rc;
	if (h->number != number)
		return bad(w, number, "is another page");
	if (h->flags != kind)
		return bad(w, number, "is of another kind");
	if (h->lower < sizeof(*h) || h->lower > h->upper || h->upper > w->p->page_bytes ||
	    h->lower % 2)
		return bad(w, number, "has bounds that cannot be");
	*n = (h->lower - sizeof(*h)) / 2;
	if (*n == 0)
		return bad(w, number, "is empty");
	wrong = wrong_in_nodes(w, page, *n);
	return wrong ? bad(w, number, wrong) : 0;
}

/* Keys ascend and keep to the bounds; the first of a branch page does not count. */
static int check_keys(const struct walk *w, const unsigned char *page, size_t number, size_t n,
		      const struct key *from, const struct key *to)
{
	const bool leaf = ((const struct page_head *)(const void *)page)->flags == P_LEAF;
	struct key last = *from;

	for (size_t i = leaf ? 0 : 1; i < n; i++) {
		const struct node *x = node_at(page, i);
		const struct key k = { (const unsigned char *)(x + 1), x->key_len };
		const int c = last.p ? compare(w, &last, &k) : -1;

		if (c > 0 || (c == 0 && i > 0 && last.p != from->p))
			return bad(w, number, "has keys out of order");
		last = k;
	}
	if (last.p && to->p && compare(w, &last, to) >= 0)
		return bad(w, number, "has keys out of order");
	return 0;
}

/* Read a value that has pages of its own. */
static int load_big(struct walk *w, const struct node *x, size_t on, const unsigned char **val)
{
	const size_t len = data_len(x);
	const size_t need = (sizeof(struct page_head) - 1 + len) / w->p->page_bytes + 1;
	struct page_head h;
	size_t first;
	int rc;

	memcpy(&first, (const unsigned char *)(x + 1) + x->key_len, sizeof(first));
	if (first < FIRST_PAGE || first >= w->p->n_file)
		return bad(w, on, "leads outside of the file");
	rc = read_at(w->p, &h, sizeof(h), first, w->err);
	if (rc < 0)
		return rc;
	if (h.number != first || h.flags != P_OVERFLOW || h.n_pages < need)
		return bad(w, first, "is another page");
	if (!use(w->p, first, h.n_pages))
		return bad(w, first, "is outside of the file or used twice");
	if (w->big_room < sizeof(h) + len) {
		free(w->big);
		w->big_room = 2 * (sizeof(h) + len);
		w->big = malloc(w->big_room);
		if (!w->big) {
			w->big_room = 0;
			return gpuq_fail(w->err, GPUQ_ENOMEM, "store: out of memory");
		}
	}
	rc = read_at(w->p, w->big, sizeof(h) + len, first, w->err);
	w->n_overflow += h.n_pages;
	*val = w->big + sizeof(h);
	return rc;
}

static int walk_leaf(struct walk *w, const unsigned char *page, size_t number, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct node *x = node_at(page, i);
		const unsigned char *key = (const unsigned char *)(x + 1), *val = key + x->key_len;

		if (x->flags & N_BIG)
			rc = load_big(w, x, number, &val);
		if (rc == 0 && (w->node_flags & N_TREE) &&
		    ((x->flags & N_TREE) == 0 || data_len(x) != sizeof(struct tree)))
			rc = bad(w, number, "has a node of another kind");
		if (rc == 0 && w->fn)
			rc = w->fn(w->arg, key, x->key_len, val, data_len(x));
		w->n_records++;
	}
	return rc;
}

static int walk_page(struct walk *w, size_t number, unsigned level, const struct key *from,
		     const struct key *to)
{
	unsigned char *page = w->pages + (level - 1) * w->p->page_bytes;
	size_t n = 0;
	int rc = load_page(w, page, number, level, &n);

	if (rc == 0)
		rc = check_keys(w, page, number, n, from, to);
	if (rc < 0)
		return rc;
	if (level == w->tree->depth) {
		w->n_leaf++;
		return walk_leaf(w, page, number, n);
	}
	w->n_branch++;
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct node *x = node_at(page, i), *y = i + 1 < n ? node_at(page, i + 1) : x;
		const struct key low = { (const unsigned char *)(x + 1), x->key_len };
		const struct key high = { (const unsigned char *)(y + 1), y->key_len };

		rc = walk_page(w, child_of(x), level + 1, i ? &low : from, y != x ? &high : to);
	}
	return rc;
}

static int walk_tree(struct walk *w)
{
	static const struct key none = { NULL, 0 };
	const struct pages_tree *t = w->tree;
	int rc = 0;

	if ((t->root == NO_PAGE) != (t->depth == 0) || t->depth > DEPTH_MAX)
		return bad(w, t->root, "cannot be the first of its tree");
	if (t->depth) {
		w->pages = malloc(t->depth * w->p->page_bytes);
		if (!w->pages)
			return gpuq_fail(w->err, GPUQ_ENOMEM, "store: out of memory");
		rc = walk_page(w, t->root, 1, &none, &none);
	}
	if (rc == 0 && (w->n_branch != t->n_branch || w->n_leaf != t->n_leaf ||
			w->n_overflow != t->n_overflow || w->n_records != t->n_records))
		rc = bad(w, t->root, "does not lead to as many pages and records as it should");
	free(w->pages);
	free(w->big);
	return rc;
}

int pages_walk(struct pages *p, const struct pages_tree *t, pages_record_fn fn, void *arg,
	       struct gpuq_err *err)
{
	struct walk w = {
		.p = p, .tree = t, .fn = fn, .arg = arg, .err = err, .node_flags = N_BIG
	};

	return walk_tree(&w);
}

/* ---- the list of tables ---- */

static struct pages_tree tree_of(const struct tree *t, const char *name, size_t name_len)
{
	struct pages_tree out = { .depth = t->depth,
				  .n_branch = t->n_branch,
				  .n_leaf = t->n_leaf,
				  .n_overflow = t->n_overflow,
				  .n_records = t->n_records,
				  .root = t->root };

	memcpy(out.name, name, name_len);
	return out;
}

struct tables {
	pages_table_fn fn;
	void *arg;
	struct gpuq_err *err;
};

static int one_table(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	const struct tables *x = arg;
	struct pages_tree out;
	struct tree t;

	(void)val_len;
	memcpy(&t, val, sizeof(t));
	if (key_len > PAGES_NAME_MAX || t.flags != 0 || t.pad != 0)
		return gpuq_fail(x->err, GPUQ_ECORRUPT,
				 "store: the list of tables is damaged: keep the files and restore "
				 "a backup");
	out = tree_of(&t, (const char *)key, key_len);
	return x->fn(x->arg, &out);
}

int pages_tables(struct pages *p, pages_table_fn fn, void *arg, struct gpuq_err *err)
{
	static const char name[] = "of tables";
	const struct pages_tree t = tree_of(&p->meta.trees[1], name, sizeof(name) - 1);
	struct tables x = { fn, arg, err };
	struct walk w = {
		.p = p, .tree = &t, .fn = one_table, .arg = &x, .err = err, .node_flags = N_TREE
	};

	return walk_tree(&w);
}

/* ---- free pages ---- */

struct free_list {
	struct pages *p;
	size_t n_beyond; /* that the file does not have */
	struct gpuq_err *err;
};

static int bad_list(struct gpuq_err *err, const char *what)
{
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "store: the list of free pages is damaged: %s: keep the files and restore "
			 "a backup",
			 what);
}

/* A count, then page numbers that descend. */
static int one_list(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		    size_t val_len)
{
	struct free_list *x = arg;
	size_t txn, n, last = SIZE_MAX, page;

	(void)key_len;
	memcpy(&txn, key, sizeof(txn));
	if (txn > x->p->meta.txn || val_len < sizeof(n))
		return bad_list(x->err, "a transaction that never was");
	memcpy(&n, val, sizeof(n));
	if (n > val_len / sizeof(n) - 1)
		return bad_list(x->err, "more pages than it has space for");
	for (size_t i = 1; i <= n; i++) {
		memcpy(&page, val + i * sizeof(page), sizeof(page));
		if (page < FIRST_PAGE || page >= last || page > x->p->meta.last_page)
			return bad_list(x->err, "a page that cannot be");
		last = page;
		if (page >= x->p->n_file)
			x->n_beyond++;
		else if (!use(x->p, page, 1))
			return bad_list(x->err, "a page that is in use");
	}
	return 0;
}

int pages_check_free(struct pages *p, struct gpuq_err *err)
{
	static const char name[] = "of free pages";
	const struct pages_tree t = tree_of(&p->meta.trees[0], name, sizeof(name) - 1);
	struct free_list x = { p, 0, err };
	struct walk w = { .p = p,
			  .tree = &t,
			  .numbers = true,
			  .fn = one_list,
			  .arg = &x,
			  .err = err,
			  .node_flags = N_BIG };
	int rc = walk_tree(&w);

	/* Pages at the end that were given and taken back in one transaction were never
	 * written: the file may end before them, and they are free. */
	if (rc == 0 && p->meta.last_page >= p->n_file &&
	    x.n_beyond != p->meta.last_page + 1 - p->n_file)
		rc = gpuq_fail(err, GPUQ_ECORRUPT,
			       "store: the database file has %zu pages and should have %zu: keep "
			       "the files and restore a backup",
			       p->n_file, p->meta.last_page + 1);
	return rc;
}
