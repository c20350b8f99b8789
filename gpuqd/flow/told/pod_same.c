#include "gpuqd/flow/told/pod_same.h"

#include <string.h>

#include "gpuqd/state/model.h"

const char *pod_same_token(const struct pod *p, const struct pod_key *key)
{
	return key->attempt == p->job->attempt ? p->job->life->token : NULL;
}

bool pod_same_name_only(const struct pod *p, const struct pod_key *key, const struct pod_fact *f)
{
	const char *token = pod_same_token(p, key);

	return token && !(*f->uid && *p->uid) && strcmp(f->token, token) != 0;
}

bool pod_same_is_meant(const struct pod *p, const struct pod_key *key, const struct pod_fact *f)
{
	const char *token = pod_same_token(p, key);

	return (!*f->token || !token || strcmp(f->token, token) == 0) &&
	       (!*f->uid || !*p->uid || strcmp(f->uid, p->uid) == 0);
}
