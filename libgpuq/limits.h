/* limits.h - every limit that a peer or a file can run into, with its reason
 *
 * One header, so that a reader can judge what a hostile peer can cost, and a test
 * can try each one. Owns and touches nothing.
 */
#ifndef LIBGPUQ_LIMITS_H
#define LIBGPUQ_LIMITS_H

/* Wire. A message before hello is small; after it, as large as a batch of specs. */
#define GPUQ_MSG_BYTES_MAX (4u << 20)
#define GPUQ_MSG_BYTES_MAX_HELLO (16u << 10)
#define GPUQ_MSG_DEPTH_MAX 24u /* specs carry pod templates, which nest */
#define GPUQ_MSG_ITEMS_MAX 65536u
#define GPUQ_OUTSTANDING_MAX 128u /* calls of one connection without a reply */
#define GPUQ_OUTPUT_BYTES_MAX (8u << 20) /* unsent bytes before a connection is closed */
#define GPUQ_OUTPUT_BYTES_PAUSE (1u << 20) /* unsent bytes at which streams pause */
#define GPUQ_STREAM_CREDIT 64u /* items a stream may send before the first grant */
#define GPUQ_STREAM_CREDIT_MAX (1u << 20)
#define GPUQ_OUTPUT_BYTES_SMALL                                                                    \
	(64u << 10) /* unsent bytes at which they do where bounds are full */
#define GPUQ_MSG_BYTES_SMALL (16u << 10) /* messages up to this need no part of the bounds below */
#define GPUQ_MSG_BYTES_PLAIN (64u << 10) /* of a method that takes no lists of names and no specs */
#define GPUQ_MSG_BYTES_NAMES                                                                       \
	(1u << 20) /* of one that takes names: ids of 65,536 jobs, 10,000 nodes */
#define GPUQ_FLIGHT_BYTES_PER_USER (64u << 20) /* 16 of the longest messages at once */
#define GPUQ_FLIGHT_BYTES_RESERVE (8u << 20) /* beyond that: for short calls and their replies */
#define GPUQ_FLIGHT_BYTES_MAX                                                                      \
	(256u << 20) /* of all users: a quarter of the memory of a small host */
#define GPUQ_CONNECTIONS_PER_UID 256u /* unless gpuqd.yaml says another number */
#define GPUQ_CONNECTIONS_RESERVE 8u /* beyond it, of each user: for short calls (status, cancel) */
#define GPUQ_CONNECTIONS_RESERVE_OPERATOR                                                          \
	32u /* of each operator, and of them all beyond the next */
#define GPUQ_LASTING_PER_USER                                                                      \
	512u /* calls that last (waits, output, events, sessions), or two for each connection */
#define GPUQ_LOGS_PER_USER                                                                         \
	1024u /* outputs of pods that are read, beyond which no further call begins: each may cost a \
	       * process or a connection to the cluster */
#define GPUQ_CONNECTIONS_MAX 16384u /* of all users; as many files as the process may open */
#define GPUQ_RESERVE_IDLE_S 5 /* a connection of the reserve without a call ends */
#define GPUQ_HELLO_TIMEOUT_S 5
#define GPUQ_FRAME_TIMEOUT_S 15 /* from a message's first byte to its last: no slow loris */
#define GPUQ_IDLE_TIMEOUT_S 600 /* without a call or an open stream */
#define GPUQ_PING_S 30

/* Away from the host: what a client costs before it has said who it is. */
#define GPUQ_STRANGERS_MAX 1024u /* connections without a hello that was accepted */
#define GPUQ_STRANGERS_PER_ADDRESS 32u /* of one IPv4 address, or of one IPv6 /64 */
#define GPUQ_HANDSHAKES_PER_S 20u /* of an address; further ones wait, as long as a hello may */
#define GPUQ_AUTH_DELAY_S 1 /* until a wrong proof of identity is answered */
#define GPUQ_CREDENTIAL_BYTES_MAX 8192u /* of a token in hello */
#define GPUQ_IDENTITY_BYTES_MAX 128u /* name of a user that a certificate or a token carries */
#define GPUQ_IDENTITIES_MAX                                                                        \
	16384u /* of users not on unix sockets: idle ones beyond are forgotten */
/* Once it is known who it is; operators on unix sockets are exempt. */
#define GPUQ_CALLS_PER_S                                                                           \
	200u /* of one user, beyond a burst: ten times what a person with scripts makes */
#define GPUQ_CALLS_BURST 1000u
#define GPUQ_SUBMITS_PER_S 50u /* calls of submit, however many jobs each has */
#define GPUQ_SUBMITS_BURST 200u
#define GPUQ_PIN_BYTES 52u /* "sha256:", 43 characters, NUL */
#define GPUQ_TOKENS_PER_USER 1000u /* that have not been forgotten */
#define GPUQ_TOKEN_KEEP_S (30 * 86400) /* an expired or revoked token is listed for so long */
#define GPUQ_TOKEN_OPERATE_S 86400 /* longest life of a token with scope operate */

/* Issuers of web tokens. */
#define GPUQ_ISSUERS_MAX 32u /* rules of auth.oidc */
#define GPUQ_JWKS_BYTES_MAX (256u << 10) /* of the set of keys, and of what says where it is */
#define GPUQ_KEYS_LEAST_S 300 /* keys are kept for so long at least, whatever Cache-Control says */
#define GPUQ_KEYS_MOST_S 86400 /* and at most; for so long they hold while the issuer is away */
#define GPUQ_KEYS_UNKNOWN_S 60 /* between renewals for keys that are not known */
#define GPUQ_REVIEWS_MAX 4096u /* tokens of the cluster in use, or used in the last minute */
#define GPUQ_KEYS_WAITERS_MAX 256u /* of one issuer: hellos that wait for its keys */

/* Logins that gpuqd runs (RFC 8628), of clients whose user is not known yet. */
#define GPUQ_LOGINS_MAX 256u /* under way */
#define GPUQ_LOGINS_PER_ADDRESS 8u /* of one IPv4 address, or of one IPv6 /64 */
#define GPUQ_LOGIN_S 1800 /* longest time to confirm one, whatever the issuer allows */
#define GPUQ_LOGIN_IDLE_S 120 /* one whose client does not ask is forgotten */
#define GPUQ_LOGIN_REPLY_BYTES_MAX (64u << 10) /* of an issuer's answer */

/* Sessions: exec, attach, port-forward. One piece for each item of credit is buffered for a slow
 * reader, in either direction. */
#define GPUQ_SESSION_PIECE_BYTES 16384u
#define GPUQ_SESSION_CREDIT 16u /* pieces a client may send before they have left */
#define GPUQ_SESSIONS_PER_USER 64u
#define GPUQ_SESSIONS_MAX 512u

/* Files and specs. */
#define GPUQ_YAML_BYTES_MAX (1u << 20)
#define GPUQ_YAML_DEPTH_MAX 32u /* libyaml's flow nesting costs quadratic time */
#define GPUQ_YAML_NODES_MAX 65536u
#define GPUQ_YAML_ALIASES_MAX 999u /* of a file of jobs */
#define GPUQ_SPEC_BYTES_MAX (256u << 10) /* one encoded spec, script and env included */
#define GPUQ_DOCS_MAX 1000u /* jobs in one file */
#define GPUQ_NAME_BYTES_MAX 63u /* names that become labels and host names */
#define GPUQ_JOB_NAME_BYTES_MAX 255u /* a part of an output file's path is not longer */
#define GPUQ_QUEUES_ASKED_MAX 16u /* a job may name so many: it is checked for each */
#define GPUQ_TEXT_BYTES_MAX 1024u /* comments and messages */
#define GPUQ_KEY_BYTES_MAX 128u /* idempotency key */
#define GPUQ_SLICES_MAX 16u /* layers of slices in one group */
#define GPUQ_PODS_MAX 4096u /* of one job or array element */
#define GPUQ_GROUPS_MAX 32u
#define GPUQ_ARRAY_MAX 100000u /* elements */
#define GPUQ_ARRAY_INDEX_MAX 4000000u
#define GPUQ_PRIORITY_MAX INT64_C(4294967294) /* that an operator may say; as in Slurm */
#define GPUQ_GPUS_PER_POD_MAX 1024u
#define GPUQ_DEPENDS_MAX 64u
#define GPUQ_RETRY_MAX 1000u
#define GPUQ_MAP_MAX 1024u /* pairs of a map that is built one by one: costs squares */
/* Claims of devices of one pod, the alternatives of one and the devices of one; the last two as in
 * Kubernetes. */
#define GPUQ_CLAIMS_MAX 16u
#define GPUQ_CLAIM_OPTIONS_MAX 8u
#define GPUQ_CLAIM_DEVICES_MAX 32u
#define GPUQ_CLAIM_CONSUMERS_MAX 256u
#define GPUQ_VOLUMES_MAX 256u /* of a pod, given as options */

/* MIG profiles of which a group accepts any; those that are tried for one that accepts instances by their
 * memory, the smallest first. */
#define GPUQ_MIG_PROFILES_MAX 8u
#define GPUQ_MIG_TRIES_MAX 16u

/* Code that a job carries (--code): files of a directory, as one compressed archive. */
#define GPUQ_CODE_FILES_MAX 100000u /* files and directories of one */
#define GPUQ_CODE_TREE_BYTES_MAX                                                                   \
	(1u << 30) /* of its files: what gzip makes of zeros must end as well */
#define GPUQ_CODE_BYTES_MAX (64u << 20) /* of the archive */
#define GPUQ_CODE_PIECE_BYTES                                                                      \
	(256u << 10) /* of it that one call carries: in time over a slow line */
#define GPUQ_CODE_POD_BYTES (1u << 20) /* of it and the script, where a ConfigMap carries them */
#define GPUQ_CODE_CONFIG_MAP_BYTES                                                                 \
	(700u << 10) /* an archive of more goes by code_store, where gpuqd has one */
#define GPUQ_CODE_USER_BYTES_MAX                                                                   \
	(INT64_C(1) << 30) /* of all archives of a user in the state directory */
#define GPUQ_CODE_ALL_BYTES_MAX (INT64_C(8) << 30) /* of all users */
#define GPUQ_CODE_UPLOADS_PER_USER 8u /* archives of a user that arrive at once */
#define GPUQ_CODE_UPLOADS_MAX 256u
#define GPUQ_CODE_IDLE_S 600 /* an archive of which nothing arrives for so long is forgotten */
#define GPUQ_CODE_KEEP_S                                                                           \
	3600 /* one that no job names is kept for so long, for the next submission */

/* Kubernetes. */
#define GPUQ_KUBE_OBJECT_BYTES_MAX (2u << 20) /* a larger one is skipped and counted */
#define GPUQ_KUBE_EVENT_BYTES_MAX (16u << 20) /* one line of a watch, as Go's reader */
#define GPUQ_KUBE_DEPTH_MAX 64u
#define GPUQ_METRICS_URLS_MAX 256u
#define GPUQ_METRICS_BYTES_MAX (64u << 20) /* of one page: 10,000 nodes' worth, thrice */
#define GPUQ_METRICS_DEVICES_MAX 200000u /* of one round; more are left out */
#define GPUQ_METRICS_AMOUNTS_MAX 1000000u /* likewise, of containers */

#define GPUQ_LOGS_KEPT_BYTES_MAX                                                                   \
	(INT64_C(8) << 30) /* of output of pods that are gone (logs_keep) */
#define GPUQ_LOGS_KEPT_POD_BYTES (16u << 20) /* of one pod, unless logs_keep says another size */

#define GPUQ_GRANT_MINUTES_MAX 1000000000 /* to a budget at once: 2,000 years of a device */

/* Kept. */
#define GPUQ_KEY_KEEP_S (7 * 86400) /* idempotency keys */
#define GPUQ_AUDIT_KEEP_S (400 * 86400) /* the audit: a year, and time to read it */
#define GPUQ_AUDIT_MAX 200000u /* records of it: about 100 MB at the most */
#define GPUQ_OUTBOX_MAX 100000u /* messages that wait to be reported: about 150 MB */
#define GPUQ_LOG_LINE_BYTES_MAX 1024u /* one log record */

#endif
