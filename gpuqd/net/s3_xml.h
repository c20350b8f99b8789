/* s3_xml.h - the few elements of an answer of S3 that are read
 *
 * Owns     nothing. Touches memory only.
 * Used by  s3.c, flow/copies/target_s3.c.
 *
 * No parser of XML: elements are found by their names, attributes and what surrounds them are passed over.
 * No element that is read contains one of its own name.
 */
#ifndef GPUQD_NET_S3_XML_H
#define GPUQD_NET_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

struct s3_xml {
	const char *at;
	size_t n;
};

/* Take the next element of that name out of rest: what is inside it. False: there is none. */
bool s3_xml_next(struct s3_xml *rest, const char *tag, struct s3_xml *inside);
/* The text of the first element of that name, with its entities resolved. False: there is none, or
 * it has no room in size bytes; out is then "". */
bool s3_xml_text(const struct s3_xml *in, const char *tag, char *out, size_t size);

#endif
