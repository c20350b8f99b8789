/* talk.h - protocol between the daemon and a pod's shepherd during a session
 *
 * Owns     the form of the frames. Touches memory only.
 * Used by  local_session.c (the daemon's end), shepherd_talk.c and attendant.c.
 *
 * A frame is a letter, its length in three bytes (the highest first) and that many bytes.
 * The daemon speaks first: one TALK_REQUEST. Its end of the connection is the session's:
 * when it closes, the client has hung up. The other end closes after TALK_EXIT or TALK_FAIL.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_TALK_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_TALK_H

#include <stdbool.h>
#include <stddef.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/schema.h"

#define TALK_BYTES_MAX (128u << 10) /* of one frame: a command line is the longest */
#define TALK_PIECE_BYTES 16384u
#define TALK_BUFFER_BYTES (64u << 10) /* unsent, beyond which nothing more is read */

/* Where a shepherd listens, in the pod's directory. */
#define TALK_EXEC "exec.sock" /* programs beside the job, and its ports */
#define TALK_ATTACH "attach.sock" /* the job itself */

enum talk_type {
	TALK_REQUEST = 'R',
	TALK_IN = 'i',
	TALK_IN_END = 'I',
	TALK_SIZE = 'w', /* "COLS ROWS" */
	TALK_OPEN = 'K',
	TALK_OUT = 'o',
	TALK_ERR = 'e',
	TALK_OUT_END = 'E', /* of a port */
	TALK_EXIT = 'x', /* "CODE" */
	TALK_FAIL = 'f', /* a sentence */
};

struct talk_frame {
	enum talk_type type;
	const char *bytes;
	size_t n;
};

struct talk_request {
	int port; /* 0 = no port is meant */
	bool input, output, tty, replay;
	int cols, rows;
	struct gpuq_strlist command; /* items[n] is NULL */
};

void talk_put(struct gpuq_buf *b, enum talk_type type, const void *bytes, size_t n);
void talk_puts(struct gpuq_buf *b, enum talk_type type, const char *text);
/* As many frames as it takes. */
void talk_put_data(struct gpuq_buf *b, enum talk_type type, const char *bytes, size_t n);

/* The frame at the beginning of bytes[0..n): its whole length and *out, 0 when more bytes
 * are needed, -1 when it is none. */
long talk_next(const char *bytes, size_t n, struct talk_frame *out);

void talk_request_write(struct gpuq_buf *b, const struct talk_request *r);
/* false: it is none, or there is no memory. Strings live in a. */
bool talk_request_read(const struct talk_frame *f, struct gpuq_arena *a, struct talk_request *out);

/* "COLS ROWS"; false when they are no two numbers of a terminal. */
bool talk_size_read(const struct talk_frame *f, int *cols, int *rows);

#endif
