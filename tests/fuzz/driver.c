/* The driver of a fuzz target where there is no libFuzzer: replays every seed and, so
 * that `make check` sees a little more, a fixed number of mutations of each.
 *
 *	fuzz_NAME [FILE...]         files instead of $srcdir/tests/fuzz/seeds/NAME
 *	GPUQ_FUZZ_ROUNDS=N          mutations of each seed, default FUZZ_ROUNDS (300)
 *
 * Mutations follow from the seed alone, so that a failure can be repeated. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FUZZ_ROUNDS
#define FUZZ_ROUNDS 300 /* fewer for a target that takes milliseconds an input */
#endif
#define INPUT_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint64_t dice;

static uint64_t roll(uint64_t below)
{
	dice ^= dice << 13; /* xorshift64, Marsaglia 2003 */
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice % below;
}

/* The input is passed in a block of its very size, so that a look beyond is seen. */
static void try_bytes(const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	memcpy(copy, p, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static size_t mutate(uint8_t *p, size_t n, size_t room)
{
	size_t at = n ? roll(n) : 0, len;

	switch (roll(6)) {
	case 0: /* flip a bit */
		if (n)
			p[at] ^= (uint8_t)(1u << roll(8));
		break;
	case 1: /* another byte */
		if (n)
			p[at] = (uint8_t)roll(256);
		break;
	case 2: /* cut the end */
		n = at;
		break;
	case 3: /* take a piece out */
		len = n ? roll(n - at) + 1 : 0;
		memmove(p + at, p + at + len, n - at - len);
		n -= len;
		break;
	case 4: /* say a piece twice */
		len = n ? roll(n - at) + 1 : 0;
		if (n + len > room)
			break;
		memmove(p + at + len, p + at, n - at);
		n += len;
		break;
	default: /* put a byte in */
		if (n == room)
			break;
		memmove(p + at + 1, p + at, n - at);
		p[at] = (uint8_t)roll(256);
		n++;
	}
	return n;
}

static int replay(const char *path, long rounds)
{
	uint8_t *seed = malloc(INPUT_BYTES_MAX), *work = malloc(2 * INPUT_BYTES_MAX);
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f || !seed || !work) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(1);
	}
	n = fread(seed, 1, INPUT_BYTES_MAX, f);
	fclose(f);
	fprintf(stderr, "%s\n", path); /* the last line names the culprit of a crash */
	try_bytes(seed, n);
	dice = 0x9e3779b97f4a7c15u + n;
	for (long i = 0; i < rounds; i++) {
		size_t len = n;

		memcpy(work, seed, n);
		for (uint64_t k = roll(8) + 1; k > 0; k--)
			len = mutate(work, len, 2 * INPUT_BYTES_MAX);
		try_bytes(work, len);
	}
	free(seed);
	free(work);
	return 1;
}

int main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir"), *env = getenv("GPUQ_FUZZ_ROUNDS");
	const long rounds = env ? strtol(env, NULL, 10) : FUZZ_ROUNDS;
	struct dirent **names = NULL;
	char dir[1024], path[2048];
	int n, done = 0;

	for (int i = 1; i < argc; i++)
		done += replay(argv[i], rounds);
	if (argc > 1)
		return done ? 0 : 1;
	snprintf(dir, sizeof(dir), "%s/tests/fuzz/seeds/%s", srcdir ? srcdir : ".", FUZZ_TARGET);
	n = scandir(dir, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
			done += replay(path, rounds);
		}
		free(names[i]);
	}
	free(names);
	if (done == 0)
		fprintf(stderr, "no seeds in %s\n", dir);
	return done ? 0 : 1;
}
