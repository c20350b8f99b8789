/* Decide which output is kept: files of a pod carry its identity, not only its name, which a pod
 * of another job may have had before the database was restored from a copy. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/cluster/local/local_kept.h"
#include "gpuqd/cluster/local/local_pod.h"
#include "gpuqd/cluster/local/shepherd/shepherd_log.h"

static bool is_kept(const struct local *l, const char *stem)
{
	char name[300];

	snprintf(name, sizeof(name), "%s.log", stem);
	return faccessat(l->logs_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Find the newest output of a pod of this name and owner, whose identity is not known any more. */
static bool find_of_owner(const struct local *l, const char *pod, uint32_t owner,
			  char out[LOG_STEM_BYTES])
{
	int fd = openat(l->logs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct timespec newest = { 0, 0 };
	char begin[LOG_STEM_BYTES];
	bool found = false;
	struct dirent *e;
	size_t n;

	if (!dir && fd >= 0)
		close(fd);
	n = (size_t)snprintf(begin, sizeof(begin), "%s.%08" PRIx32, pod, owner);
	while (dir && (e = readdir(dir))) {
		const size_t len = strlen(e->d_name);
		struct stat st;

		if (strncmp(e->d_name, begin, n) != 0 || len < n + 4 || len >= LOG_STEM_BYTES ||
		    strcmp(e->d_name + len - 4, ".log") != 0 ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (found &&
		    (st.st_mtim.tv_sec < newest.tv_sec ||
		     (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec < newest.tv_nsec)))
			continue;
		found = true;
		newest = st.st_mtim;
		snprintf(out, LOG_STEM_BYTES, "%.*s", (int)(len - 4), e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

int local_kept_stem(struct local *l, const struct pod_ref *ref, uint32_t owner,
		    char out[LOG_STEM_BYTES], struct gpuq_err *err)
{
	const struct local_pod *p = local_pod_find(l, ref->name);
	const char *uid = ref->uid ? ref->uid : "";
	/* A job that has ended has no pods any more, one of an earlier attempt no identity. */
	const bool of_owner = !*uid && !(ref->token && *ref->token) && owner != UINT32_MAX;
	const bool meant = p && (*uid || (ref->token && *ref->token)) && local_pod_meant(p, ref);

	if (of_owner && (!p || p->job_uid == owner)) {
		if (find_of_owner(l, ref->name, owner, out))
			return 0;
		return gpuq_fail(err, GPUQ_ENOENT, "no output of pod %s is kept", ref->name);
	}
	if (p && (!meant || (owner != UINT32_MAX && owner != p->job_uid)))
		return gpuq_fail(err, GPUQ_ENOENT,
				 "no output of pod %s is kept: the pod of this name is of another "
				 "job",
				 ref->name);
	if (p) {
		shepherd_log_stem(p->name, *p->note ? p->uid : "", out);
		return 0;
	}
	shepherd_log_stem(ref->name, uid, out);
	if (!is_kept(l, out)) /* of a pod that an older gpuqd made */
		shepherd_log_stem(ref->name, "", out);
	return is_kept(l, out)
		       ? 0
		       : gpuq_fail(err, GPUQ_ENOENT, "no output of pod %s is kept", ref->name);
}

bool local_kept_in_use(struct local *l, const char *stem)
{
	char pod[300];
	const struct local_pod *p;

	snprintf(pod, sizeof(pod), "%s", stem);
	pod[strcspn(pod, ".")] = '\0';
	p = local_pod_find(l, pod);
	if (!p) /* a name with dots in it: none of gpuq's own */
		p = local_pod_find(l, stem);
	return p != NULL;
}

uint32_t local_kept_highest_job(struct cluster *c)
{
	struct local *l = (struct local *)c;
	int fd = openat(l->logs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	unsigned long highest = 0;
	struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		const size_t n = strlen("gpuq-") + strlen(l->cluster_id);
		unsigned long job;

		if (strncmp(e->d_name, "gpuq-", strlen("gpuq-")) != 0 ||
		    strncmp(e->d_name + strlen("gpuq-"), l->cluster_id, strlen(l->cluster_id)) !=
			    0 ||
		    e->d_name[n] != '-')
			continue;
		job = strtoul(e->d_name + n + 1, NULL, 10);
		if (job > highest && job <= UINT32_MAX)
			highest = job;
	}
	if (dir)
		closedir(dir);
	return (uint32_t)highest;
}
