/* Selectors of devices: the part of CEL in gpuq-cel(7). */
#include <criterion/criterion.h>

#include <string.h>

#include "libgpuq/cel/cel.h"
#include "libgpuq/cel/cel_values.h"

#define D "device.attributes['gpu.nvidia.com']."
#define C "device.capacity['gpu.nvidia.com']."

static const struct {
	bool capacity;
	const char *name;
	struct gpuq_cel_value v;
} has[] = {
	{ false, "productName", { GPUQ_CEL_STRING, 0, "NVIDIA A100", 11 } },
	{ false, "type", { GPUQ_CEL_STRING, 0, "gpu", 3 } },
	{ false, "index", { GPUQ_CEL_INT, 3, NULL, 0 } },
	{ false, "ecc", { GPUQ_CEL_BOOL, 1, NULL, 0 } },
	{ false, "driverVersion", { GPUQ_CEL_VERSION, 0, "12.4.0-rc.2", 11 } },
	{ true, "memory", { GPUQ_CEL_QUANTITY, (INT64_C(40) << 30) * 1000, NULL, 0 } },
};

static bool look(void *arg, bool capacity, const char *domain, size_t n_domain, const char *name,
		 size_t n_name, struct gpuq_cel_value *out)
{
	(void)arg;
	if (n_domain != 14 || memcmp(domain, "gpu.nvidia.com", 14) != 0)
		return false;
	for (size_t i = 0; i < sizeof(has) / sizeof(has[0]); i++)
		if (has[i].capacity == capacity && strlen(has[i].name) == n_name &&
		    memcmp(has[i].name, name, n_name) == 0) {
			*out = has[i].v;
			return true;
		}
	return false;
}

static const struct gpuq_cel_device device = { NULL, "gpu.nvidia.com", look };

Test(cel, holds)
{
	static const struct {
		const char *text;
		bool holds;
	} rows[] = {
		{ "true", true },
		{ "!true", false },
		{ "device.driver == 'gpu.nvidia.com'", true },
		{ "device.driver != \"gpu.nvidia.com\"", false },
		{ D "productName == 'NVIDIA A100'", true },
		{ D "productName == 'NVIDIA A10'", false },
		{ "device.attributes['gpu.nvidia.com']['type'] == 'gpu'", true },
		{ D "productName.lowerAscii().contains('a100')", true },
		{ D "productName.contains('a100')", false },
		{ D "productName.upperAscii().endsWith('IA A100')", true },
		{ D "productName.startsWith('NVIDIA') && " D "type == 'gpu'", true },
		{ D "productName.startsWith('NVIDIA A100 and more')", false },
		{ D "index == 3", true },
		{ D "index in [1, 2]", false },
		{ D "index in [1, 2, 3]", true },
		{ D "type in ['mig', 'gpu']", true },
		{ D "index > -4 && " D "index <= 3 && " D "index >= 3 && " D "index < 4", true },
		{ "-" D "index == -3", true },
		{ D "ecc", true },
		{ "!" D "ecc", false },
		{ "has(" D "ecc)", true },
		{ "has(" D "vf)", false },
		{ "'ecc' in device.attributes['gpu.nvidia.com']", true },
		{ "'ecc' in device.attributes['x.y']", false },
		{ "'memory' in device.capacity['gpu.nvidia.com']", true },
		{ C "memory.compareTo(quantity('40Gi')) == 0", true },
		{ C "memory.compareTo(quantity('41Gi')) >= 0", false },
		{ C "memory.isGreaterThan(quantity('39999999999'))", true },
		{ C "memory.isLessThan(quantity('40Gi'))", false },
		{ C "memory == quantity('40960Mi')", true },
		{ D "driverVersion.isGreaterThan(semver('12.4.0-rc.1'))", true },
		{ D "driverVersion.isLessThan(semver('12.4.0'))", true },
		{ D "driverVersion.compareTo(semver('12.4.0-rc.10')) == -1", true },
		{ D "driverVersion.isGreaterThan(semver('12.4.0-alpha.9'))", true },
		/* An attribute that is not there is an error, which the other side may decide. */
		{ D "vf == 1", false },
		{ "!(" D "vf == 1)", false },
		{ D "vf == 1 || true", true },
		{ "true || " D "vf == 1", true },
		{ D "vf == 1 && false || true", true },
		{ "!(" D "vf == 1 && false)", true },
		{ D "vf == 1 || false", false },
		/* So is an attribute of another type. */
		{ D "type == 1", false },
		{ D "type != 1", false },
		{ D "index && true", false },
		{ "( true ) // and so on", true },
		{ "'it\\'s \\\\ \"' == \"it's \\\\ \\\"\"", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		const struct gpuq_cel *e = NULL;
		uint32_t column = 0;
		const int rc =
			gpuq_cel_read(&a, rows[i].text, strlen(rows[i].text), &e, &column, &err);

		cr_assert_eq(rc, 0, "%s: %s", rows[i].text, err.text);
		cr_expect_eq(gpuq_cel_holds(e, &device), rows[i].holds, "%s", rows[i].text);
		gpuq_arena_done(&a);
	}
}

Test(cel, refused)
{
	static const struct {
		const char *text;
		uint32_t column;
		const char *says;
	} rows[] = {
		{ "", 1, "expected a literal" },
		{ "1", 1, "a truth value, not an integer" },
		{ "device.driver", 1, "a truth value, not a string" },
		{ "true &&", 8, "expected a literal" },
		{ "true && 1", 9, "a truth value" },
		{ "true ? true : false", 6, "?:" },
		{ "device.name == 'a'", 8, "driver, attributes or capacity" },
		{ "device.attributes", 18, "[\"DOMAIN\"]" },
		{ "device.attributes[1].x == 1", 19, "a string" },
		{ D "productName.matches('a')", 49, "startsWith" },
		{ C "memory > quantity('1Gi')", 1, "compareTo" },
		{ C "memory.compareTo(1) == 0", 52, "a version or a quantity" },
		{ C "memory.compareTo(quantity('1 Gi')) == 0", 61, "a quantity such as" },
		{ D "driverVersion.isLessThan(semver('1.2')) ", 69, "a version such as" },
		{ "has(true)", 5, "takes an attribute" },
		{ "'a' in 'abc'", 8, "a list" },
		{ "1 in device.attributes['x']", 1, "a string" },
		{ "1 + 1 == 2", 3, "an operator" },
		{ "1.5 == 1.5", 2, "an integer" },
		{ "99999999999999999999 == 1", 1, "too large" },
		{ "'a", 1, "no end" },
		{ "'a\\n' == 'a'", 3, "backslash" },
		{ "'''a''' == 'a'", 1, "one pair" },
		{ "[true] == true", 1, "one value" },
		{ "(true", 6, ")" },
		{ "true true", 6, "an operator" },
		{ "cel.bind(x, 1, true)", 1, "a literal" },
		{ "'a' == 1", 8, "a string, not an integer" },
		{ "device.driver in [device.driver]", 19, "a literal in a list" },
	};
	char deep[2048], many[GPUQ_CEL_BYTES_MAX + 2];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		const struct gpuq_cel *e = NULL;
		uint32_t column = 0;

		cr_expect_eq(
			gpuq_cel_read(&a, rows[i].text, strlen(rows[i].text), &e, &column, &err),
			GPUQ_EINVAL, "%s", rows[i].text);
		cr_expect_eq(column, rows[i].column, "%s: %s", rows[i].text, err.text);
		cr_expect(strstr(err.text, rows[i].says), "%s: %s", rows[i].text, err.text);
		gpuq_arena_done(&a);
	}
	for (int shape = 0; shape < 3; shape++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		const struct gpuq_cel *e = NULL;
		uint32_t column;

		memset(deep, shape == 0 ? '(' : '!', 1000);
		deep[1000] = '\0';
		memset(many, ' ', sizeof(many));
		cr_expect_eq(gpuq_cel_read(&a, shape == 2 ? many : deep,
					   shape == 2 ? sizeof(many) : 1000, &e, &column, &err),
			     GPUQ_EINVAL);
		cr_expect(strstr(err.text, shape == 2 ? "10240" : "64 deep"), "%s", err.text);
		gpuq_arena_done(&a);
	}
}

Test(cel, versions)
{
	/* Versions in rising order, by the rules of semver.org. */
	static const char *const rising[] = { "0.9.9",      "1.0.0-1",     "1.0.0-2",
					      "1.0.0-10",   "1.0.0-alpha", "1.0.0-alpha.1",
					      "1.0.0-beta", "1.0.0",       "1.0.1",
					      "1.10.0",     "2.0.0" };
	const size_t n = sizeof(rising) / sizeof(rising[0]);
	int c;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			cr_assert(gpuq_cel_versions(rising[i], strlen(rising[i]), rising[k],
						    strlen(rising[k]), &c));
			cr_expect_eq(c, (i > k) - (i < k), "%s and %s", rising[i], rising[k]);
		}
	cr_expect(gpuq_cel_versions("1.0.0+a", 7, "1.0.0", 5, &c) && c == 0);
	cr_expect_not(gpuq_cel_versions("1.0", 3, "1.0.0", 5, &c));
	cr_expect_not(gpuq_cel_versions("01.0.0", 6, "1.0.0", 5, &c));
}
