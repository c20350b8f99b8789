/* cel_int.h - the tree of an expression
 *
 * Used by  cel_read.c, cel_holds.c.
 */
#ifndef LIBGPUQ_CEL_CEL_INT_H
#define LIBGPUQ_CEL_CEL_INT_H

#include "libgpuq/cel/cel.h"
#include "libgpuq/cel/cel_values.h"

enum cel_op {
	CEL_LITERAL,
	CEL_LIST, /* its items are a chain from left */
	CEL_DRIVER,
	CEL_LOOK, /* an attribute or a capacity */
	CEL_NAMES, /* those of one domain */
	CEL_HAS, /* of a CEL_LOOK */
	CEL_NOT,
	CEL_NEGATE,
	CEL_AND,
	CEL_OR,
	CEL_EQ,
	CEL_NE,
	CEL_LT,
	CEL_LE,
	CEL_GT,
	CEL_GE,
	CEL_IN,
	CEL_STARTS,
	CEL_ENDS,
	CEL_CONTAINS,
	CEL_LOWER, /* of ASCII; so is CEL_UPPER */
	CEL_UPPER,
	CEL_COMPARE, /* compareTo */
	CEL_GREATER, /* isGreaterThan */
	CEL_LESS,
};

struct gpuq_cel {
	enum cel_op op;
	enum gpuq_cel_type type; /* of its value */
	uint32_t column;
	bool capacity; /* of LOOK, NAMES */
	struct gpuq_cel_value value; /* of LITERAL; the domain of LOOK and NAMES */
	const char *name; /* of LOOK */
	size_t n_name;
	struct gpuq_cel *left, *right;
	struct gpuq_cel *next; /* in a list */
};

#endif
