#include "config.h"

#include "gpuq/slurm/carry.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/file.h"
#include "gpuq/slurm/mpi/mpi.h"
#include "gpuq/slurm/mpi/pmix.h"
#include "libgpuq/base/write.h"

#define MODULE_FOLDER "slurm/mpi/.libs" /* where file_beside looks for it */

static int fail(const char *path)
{
	cli_say("error: %s: %s", path, strerror(errno));
	return -1;
}

static int copy(const char *from, const char *dir, const char *name)
{
	char to[FILE_PATH_BYTES], bytes[65536];
	const int in = open(from, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;
	int out = -1;

	snprintf(to, sizeof(to), "%s/%s", dir, name);
	if (in >= 0)
		out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while (out >= 0 && (n = read(in, bytes, sizeof(bytes))) > 0)
		if (gpuq_write_all(out, bytes, (size_t)n) < 0)
			break;
	/* The job may run as another user, whatever the umask. */
	if (n == 0 && fchmod(out, 0755) < 0)
		n = -1;
	if (n != 0)
		fail(in < 0 ? from : to);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return n == 0 ? 0 : -1;
}

static int make_folder(const char *dir, const char *name)
{
	char path[FILE_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return fail(path);
	chmod(path, 0755); /* one that was there, of another user, is as that likes it */
	return 0;
}

/* A script of /bin/sh, which the job's image has if it runs scripts. */
static int write_script(const char *dir, const char *name, const char *more)
{
	char path[FILE_PATH_BYTES];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		return fail(path);
	if (more)
		fprintf(f,
			"#!/bin/sh\nexec '%s/" FILE_CARRIED_LOADER
			"' --library-path '%s/lib' '%s/lib/gpuq'%s \"$@\"\n",
			dir, dir, dir, more);
	else
		fprintf(f, "#!/bin/sh\nPATH=$PATH:'%s'\nexport PATH\nexec \"$@\"\n", dir);
	return fclose(f) == 0 && chmod(path, 0755) == 0 ? 0 : fail(path);
}

/* ---- PMIx ---- */

/* The libraries of a component are those that are there once it is loaded. */
static int carry_components(const char *dir, const char *libpmix)
{
	char real[PATH_MAX], pattern[PATH_MAX + 16];
	glob_t found;
	char *slash;
	int rc = 0;

	if (!realpath(libpmix, real) || !(slash = strrchr(real, '/')))
		return fail(libpmix);
	*slash = '\0';
	snprintf(pattern, sizeof(pattern), "%s/pmix/*.so", real);
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc && rc == 0; i++) {
		const char *path = found.gl_pathv[i];

		dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		rc = copy(path, dir, strrchr(path, '/') + 1);
	}
	globfree(&found);
	return rc;
}

static bool is_named(const char *path, const char *start)
{
	const char *slash = strrchr(path, '/');

	return slash && strncmp(slash + 1, start, strlen(start)) == 0;
}

static int carry_pmix(const char *dir)
{
	char folder[FILE_PATH_BYTES], *file = mpi_module();
	void *module = file ? dlopen(file, RTLD_LAZY | RTLD_GLOBAL) : NULL;
	struct link_map *map = NULL;
	int rc = 0;

	if (module) {
		snprintf(folder, sizeof(folder), "%s/" MODULE_FOLDER, dir);
		rc = make_folder(dir, "slurm") < 0 || make_folder(dir, "slurm/mpi") < 0 ||
				     make_folder(dir, MODULE_FOLDER) < 0 ||
				     make_folder(dir, CARRY_COMPONENTS) < 0 ||
				     copy(file, folder, PMIX_MODULE_FILE) < 0
			     ? -1
			     : 0;
		snprintf(folder, sizeof(folder), "%s/" CARRY_COMPONENTS, dir);
		dlinfo(module, RTLD_DI_LINKMAP, &map);
	}
	for (; map && rc == 0; map = map->l_next)
		if (is_named(map->l_name, "libpmix.")) {
			rc = carry_components(folder, map->l_name);
			break;
		}
	free(file);
	return rc;
}

/* ---- all of it ---- */

static bool is_module(const char *path)
{
	return is_named(path, PMIX_MODULE_FILE) || is_named(path, "pmix_mca_");
}

/* Programs link libraries by the names that they are loaded by. */
static int carry_libraries(const char *lib)
{
	void *self = dlopen(NULL, RTLD_LAZY);
	struct link_map *map = NULL;
	int rc = 0;

	if (self)
		dlinfo(self, RTLD_DI_LINKMAP, &map);
	for (; map && rc == 0; map = map->l_next) {
		const char *slash = strrchr(map->l_name, '/');

		if (!slash || is_module(map->l_name))
			continue;
		rc = copy(map->l_name, lib, is_named(map->l_name, "ld-") ? "ld.so" : slash + 1);
	}
	return rc;
}

int carry_to(const char *dir)
{
	char lib[FILE_PATH_BYTES];

	/* An older libc looks names up by libraries of their own. */
	dlopen("libnss_files.so.2", RTLD_LAZY);
	dlopen("libnss_dns.so.2", RTLD_LAZY);
	snprintf(lib, sizeof(lib), "%s/lib", dir);
	if (make_folder(dir, "lib") < 0 || carry_pmix(dir) < 0 || carry_libraries(lib) < 0 ||
	    copy("/proc/self/exe", lib, "gpuq") < 0 || write_script(dir, "gpuq", "") < 0 ||
	    write_script(dir, "srun", " slurm srun") < 0 || write_script(dir, "enter", NULL) < 0)
		return 1;
	return EXIT_DONE;
}
