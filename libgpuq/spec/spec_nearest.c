/* The nearest valid requests, for the refusal of one that is not. */
#include "libgpuq/spec/spec_int.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

#define FRACTIONS_END 0x1p53 /* numbers from here on are whole */

static double rounded_down(double x)
{
	return x < FRACTIONS_END ? (double)(int64_t)x : x;
}

const char *spec_nearest(double asked, double low, double high, double step,
			 char out[SPEC_NEAREST_ROOM])
{
	const bool less = asked < low;
	double below;

	out[0] = '\0';
	if (isnan(asked))
		return out;
	if (asked > high || asked < 0)
		asked = asked < 0 ? 0 : high;
	below = rounded_down(asked / step + 1e-9) * step;
	if (below < low)
		below = low;
	if (below >= high)
		below = high;
	if (less || below >= high || below + step > high)
		snprintf(out, SPEC_NEAREST_ROOM, ": the nearest is %.9g", below);
	else
		snprintf(out, SPEC_NEAREST_ROOM, ": the nearest are %.9g and %.9g", below,
			 below + step);
	return out;
}

const char *spec_nearest_devices(double asked, double most, char out[SPEC_NEAREST_ROOM])
{
	const bool whole = asked >= 1 || asked < 0;

	return spec_nearest(asked, asked < 0 ? 0 : 0.01, most, whole ? 1 : 0.01, out);
}

/* Return the number that the text is, of any size and sign; NAN = it is none. */
static double number_of(const char *text)
{
	char *end;
	const double x = isdigit((unsigned char)text[text[0] == '-']) ? strtod(text, &end) : NAN;

	return isnan(x) || *end ? NAN : x;
}

const char *spec_nearest_count(const char *text, int64_t unit_bytes, int64_t high,
			       char out[SPEC_NEAREST_ROOM])
{
	const char last = text[0] ? text[strlen(text) - 1] : '\0';
	int64_t milli = 0, bytes = 0;
	double asked = NAN;

	if (unit_bytes && isalpha((unsigned char)last) && last != 'm') {
		if (gpuq_bytes_parse(text, &bytes, NULL) == 0)
			asked = (double)bytes / (double)unit_bytes;
	} else if (gpuq_milli_parse(text, &milli, NULL) == 0) {
		asked = (double)milli / 1000;
	} else {
		asked = number_of(text);
	}
	if (asked >= 1 && asked <= (double)high && asked == rounded_down(asked))
		snprintf(out, SPEC_NEAREST_ROOM, ": that is %.0f", asked);
	else
		spec_nearest(asked, 1, (double)high, 1, out);
	return out;
}
