/* The archive of --code: rules of ignore files against git's own words, bytes that depend on content alone. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuq/pack/archive.h"
#include "gpuq/pack/ignore.h"

static bool is_ignored(const char *rules, const char *path, bool folder)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct ignore ig = { .a = &mem };
	bool is;

	cr_assert(ignore_add(&ig, "", rules, strlen(rules)));
	is = ignore_has(&ig, path, folder);
	gpuq_arena_done(&mem);
	return is;
}

Test(pack, ignore_rules)
{
	static const struct {
		const char *rules, *path;
		bool folder, out;
	} rows[] = {
		{ "*.o", "a.o", false, true },
		{ "*.o", "x/y/a.o", false, true },
		{ "*.o", "a.oo", false, false },
		{ "/a", "a", false, true },
		{ "/a", "x/a", false, false },
		{ "x/a", "x/a", false, true },
		{ "x/a", "y/x/a", false, false },
		{ "build/", "build", true, true },
		{ "build/", "build", false, false },
		{ "build/", "x/build", true, true },
		{ "**/foo", "foo", false, true },
		{ "**/foo", "a/b/foo", false, true },
		{ "**/foo/bar", "a/foo/bar", false, true },
		{ "**/foo/bar", "a/foo/x/bar", false, false },
		{ "abc/**", "abc", true, false },
		{ "abc/**", "abc/x/y", false, true },
		{ "a/**/b", "a/b", false, true },
		{ "a/**/b", "a/x/y/b", false, true },
		{ "a/**/b/**/c", "a/b/x/b/y/c", false, true },
		{ "a/**/b", "a/x/y/c", false, false },
		{ "a/*/b", "a/x/b", false, true },
		{ "a/*/b", "a/x/y/b", false, false },
		{ "foo*bar", "foo/bar", false, false },
		{ "[ab].c", "b.c", false, true },
		{ "[!ab].c", "b.c", false, false },
		{ "?.c", "x.c", false, true },
		{ "*\n!keep", "keep", false, false },
		{ "!keep\n*", "keep", false, true },
		{ "# no rule\n\n", "# no rule", false, false },
		{ "\\#x", "#x", false, true },
		{ "\\!x", "!x", false, true },
		{ "x  ", "x", false, true },
		{ "x\\ ", "x ", false, true },
		{ "x\r\n", "x", false, true },
		{ "/", "x", false, false },
		{ "\xef\xbb\xbfx", "x", false, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(is_ignored(rows[i].rules, rows[i].path, rows[i].folder), rows[i].out,
			     "%s of '%s'", rows[i].path, rows[i].rules);
}

Test(pack, rules_of_a_directory_hold_below_it)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct ignore ig = { .a = &mem };

	cr_assert(ignore_add(&ig, "", "*.log", 5));
	cr_assert(ignore_add(&ig, "a/b", "!x.log\n/top", 11));
	cr_expect(ignore_has(&ig, "x.log", false));
	cr_expect_not(ignore_has(&ig, "a/b/x.log", false));
	cr_expect_not(ignore_has(&ig, "a/b/c/x.log", false));
	cr_expect(ignore_has(&ig, "a/bx/x.log", false), "a/bx is not below a/b");
	cr_expect(ignore_has(&ig, "a/b/top", false));
	cr_expect_not(ignore_has(&ig, "a/b/c/top", false));
	ignore_cut(&ig, 1);
	cr_expect(ignore_has(&ig, "a/b/x.log", false));
	gpuq_arena_done(&mem);
}

/* ---- archives ---- */

static char top[] = "/tmp/gpuq-pack.XXXXXX";

static void make_top(void)
{
	cr_assert(mkdtemp(top) && chdir(top) == 0);
}

static void remove_top(void)
{
	char command[100];

	snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", top, top);
	cr_assert(chdir("/") == 0 && system(command) == 0);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

/* Pack DIR into the file that the descriptor is of. Returns its code; the text is in *err. */
static int pack(const char *dir, int fd, char digest[ARCHIVE_HEX_BYTES],
		char trace[ARCHIVE_HEX_BYTES], struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct tree t = { .fd = -1 };
	int64_t bytes = 0;
	int rc = tree_read(&mem, dir, &t, err);

	if (rc == 0)
		rc = archive_trace(&t, trace, err);
	if (rc == 0)
		rc = archive_write(&t, fd, digest, &bytes, err);
	tree_done(&t);
	gpuq_arena_done(&mem);
	return rc;
}

Test(pack, the_same_content_is_the_same_archive, .init = make_top, .fini = remove_top)
{
	char a[ARCHIVE_HEX_BYTES] = "", b[ARCHIVE_HEX_BYTES] = "", was[ARCHIVE_HEX_BYTES],
	     is[ARCHIVE_HEX_BYTES];
	struct gpuq_err err = GPUQ_ERR_INIT;
	const int fd = open("x.tgz", O_RDWR | O_CREAT, 0600);
	char name[300];

	mkdir("p", 0755);
	mkdir("p/sub", 0700);
	put("p/sub/one", "1");
	put("p/two", "2");
	memset(name, 'n', sizeof(name));
	snprintf(name + 250, sizeof(name) - 250, "%s", "");
	memcpy(name, "p/sub/", 6);
	put(name, "a long name");
	cr_assert(symlink("../two", "p/sub/link") == 0);
	cr_assert_eq(pack("p", fd, a, was, &err), 0, "%s", err.text);
	/* Another copy, of another time and with other rights. */
	cr_assert(system("cp -r p q && chmod 600 q/two && touch -d 2001-01-01 q/two q/sub") == 0);
	cr_assert_eq(pack("q", open("/dev/null", O_WRONLY), b, is, &err), 0);
	cr_expect_str_eq(a, b);
	cr_expect_str_neq(was, is);
	/* Both tars read it. */
	cr_expect(system("mkdir u && tar -C u -xzf x.tgz && diff -r p u && test \"$(readlink "
			 "u/sub/link)\" = ../two") == 0);
	cr_expect(system("command -v busybox >/dev/null || exit 0; mkdir v && gzip -dc x.tgz | "
			 "busybox tar -xf - -C v && "
			 "diff -r p v") == 0);
	put("q/two", "3");
	cr_assert_eq(pack("q", open("/dev/null", O_WRONLY), b, is, &err), 0);
	cr_expect_str_neq(a, b);
	close(fd);
}

Test(pack, a_file_that_changes_is_told, .init = make_top, .fini = remove_top)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	char digest[ARCHIVE_HEX_BYTES];
	struct tree t;
	int64_t bytes;

	mkdir("p", 0755);
	put("p/a", "1");
	put("p/b", "1");
	cr_assert_eq(tree_read(&mem, "p", &t, &err), 0);
	put("p/b", "22");
	cr_expect_eq(archive_write(&t, open("/dev/null", O_WRONLY), digest, &bytes, &err),
		     GPUQ_EBUSY);
	cr_expect(strstr(err.text, "p/b changed while it was read"), "%s", err.text);
	cr_assert(unlink("p/b") == 0);
	cr_expect_eq(archive_write(&t, open("/dev/null", O_WRONLY), digest, &bytes, &err),
		     GPUQ_EBUSY);
	tree_done(&t);
	gpuq_arena_done(&mem);
}

Test(pack, links_within_are_carried, .init = make_top, .fini = remove_top)
{
	static const struct {
		const char *to;
		int rc;
	} rows[] = {
		{ "b", 0 },
		{ "../c", 0 },
		{ "../d/../c", 0 },
		{ "./../x", 0 },
		{ "../../c", GPUQ_EINVAL },
		{ "/etc", GPUQ_EINVAL },
		{ "a/../../../c", GPUQ_EINVAL },
	};
	char digest[ARCHIVE_HEX_BYTES], trace[ARCHIVE_HEX_BYTES];

	mkdir("p", 0755);
	mkdir("p/s", 0755);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;

		unlink("p/s/link");
		cr_assert(symlink(rows[i].to, "p/s/link") == 0);
		cr_expect_eq(pack("p", open("/dev/null", O_WRONLY), digest, trace, &err),
			     rows[i].rc, "%s: %s", rows[i].to, err.text);
	}
}
