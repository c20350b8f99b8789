/* The answers of an object store: lists, uploads, errors. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/net/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* All that it takes out lies within what it was given, in order, and texts end within their room. */
static void read_all(struct s3_xml all, const char *tag)
{
	static const char *const inner[] = { "Key", "Size", "UploadId", "Code" };
	struct s3_xml rest = all, inside;
	const char *last = all.at;
	char text[16];

	while (s3_xml_next(&rest, tag, &inside)) {
		if (inside.at < last || inside.at + inside.n > all.at + all.n ||
		    rest.at + rest.n != all.at + all.n || rest.at < inside.at + inside.n)
			abort();
		last = rest.at;
		for (size_t i = 0; i < sizeof(inner) / sizeof(*inner); i++)
			if (!s3_xml_text(&inside, inner[i], text, sizeof(text)) && *text)
				abort();
			else if (strnlen(text, sizeof(text)) == sizeof(text))
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *copy = malloc(n + 1); /* ends where it ends, for the sanitizer */

	if (!copy)
		return 0;
	memcpy(copy, data, n);
	read_all((struct s3_xml){ copy, n }, "Contents");
	read_all((struct s3_xml){ copy, n }, "Upload");
	read_all((struct s3_xml){ copy, n }, "Error");
	free(copy);
	return 0;
}
