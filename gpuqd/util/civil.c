#include "gpuqd/util/civil.h"

static int64_t floor_div(int64_t x, int64_t y)
{
	return x / y - (x % y < 0);
}

int64_t civil_day(int64_t us)
{
	return floor_div(us, CIVIL_DAY_US);
}

struct civil_date civil_date(int64_t day)
{
	const int64_t z = day + 719468, era = floor_div(z, 146097), doe = z - era * 146097;
	const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	const int month = (int)(mp < 10 ? mp + 3 : mp - 9);

	return (struct civil_date){
		.year = yoe + era * 400 + (month <= 2),
		.month = month,
		.day = (int)(doy - (153 * mp + 2) / 5 + 1),
	};
}

int64_t civil_from_date(struct civil_date d)
{
	const int64_t y = d.year - (d.month <= 2), era = floor_div(y, 400), yoe = y - era * 400;
	const int64_t doy = (153 * (d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

int64_t civil_number(int64_t day)
{
	const struct civil_date d = civil_date(day);

	return d.year * 10000 + d.month * 100 + d.day;
}

void civil_period(int period, int64_t day, int64_t *first, int64_t *next)
{
	enum { DAY = 1, WEEK, MONTH, QUARTER, YEAR };
	const int months = period == YEAR ? 12 : period == QUARTER ? 3 : 1;
	struct civil_date d = civil_date(day);

	switch (period) {
	case DAY:
		*first = day;
		*next = day + 1;
		return;
	case WEEK: /* begins on Monday; 1970-01-01 was a Thursday */
		*first = floor_div(day + 3, 7) * 7 - 3;
		*next = *first + 7;
		return;
	case MONTH:
	case QUARTER:
	case YEAR:
		d.day = 1;
		d.month = (d.month - 1) / months * months + 1;
		*first = civil_from_date(d);
		d.month += months;
		d.year += d.month > 12;
		d.month = d.month > 12 ? d.month - 12 : d.month;
		*next = civil_from_date(d);
		return;
	default:
		*first = INT64_MIN;
		*next = INT64_MAX;
	}
}

int64_t civil_from_number(int64_t number)
{
	return civil_from_date((struct civil_date){ number / 10000, (int)(number / 100 % 100),
						    (int)(number % 100) });
}
