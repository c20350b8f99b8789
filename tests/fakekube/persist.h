/* persist.h - the state across a restart of the server
 *
 * Owns     the file: one JSON object per line, the counter and the audit first.
 */
#ifndef FAKEKUBE_PERSIST_H
#define FAKEKUBE_PERSIST_H

/* Write to path by way of path.new. Returns 0, or -1 with errno. */
int persist_save(const char *path);
/* Returns 1 loaded, 0 no such file, -1 not readable or not ours (said on stderr). */
int persist_load(const char *path);

#endif
