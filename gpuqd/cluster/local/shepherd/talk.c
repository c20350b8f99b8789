#include "gpuqd/cluster/local/shepherd/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 4
#define SIZE_MAX_CHARS 65535

static bool known(char type)
{
	return type && strchr("RiIwKoeExf", type);
}

void talk_put(struct gpuq_buf *b, enum talk_type type, const void *bytes, size_t n)
{
	const char head[HEAD] = { (char)type, (char)(n >> 16), (char)(n >> 8), (char)n };

	gpuq_buf_add(b, head, sizeof(head));
	if (n > 0)
		gpuq_buf_add(b, bytes, n);
}

void talk_puts(struct gpuq_buf *b, enum talk_type type, const char *text)
{
	talk_put(b, type, text, strlen(text));
}

void talk_put_data(struct gpuq_buf *b, enum talk_type type, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n; at += TALK_PIECE_BYTES)
		talk_put(b, type, bytes + at,
			 n - at < TALK_PIECE_BYTES ? n - at : TALK_PIECE_BYTES);
}

long talk_next(const char *bytes, size_t n, struct talk_frame *out)
{
	const unsigned char *p = (const unsigned char *)bytes;
	size_t len;

	if (n > 0 && !known(bytes[0]))
		return -1;
	if (n < HEAD)
		return 0;
	len = (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	if (len > TALK_BYTES_MAX)
		return -1;
	if (n < HEAD + len)
		return 0;
	*out = (struct talk_frame){ (enum talk_type)bytes[0], bytes + HEAD, len };
	return (long)(HEAD + len);
}

/* Numbers and flags in one line, then the command, a NUL behind each. */
void talk_request_write(struct gpuq_buf *b, const struct talk_request *r)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(TALK_BYTES_MAX);

	gpuq_buf_printf(&text, "1 %d %d %d %d %d %d %d", r->port, r->input, r->output, r->tty,
			r->replay, r->cols, r->rows);
	gpuq_buf_addc(&text, '\0');
	for (size_t i = 0; i < r->command.n; i++)
		gpuq_buf_add(&text, r->command.items[i], strlen(r->command.items[i]) + 1);
	if (text.failed)
		b->failed = true;
	else
		talk_put(b, TALK_REQUEST, text.data, text.len);
	gpuq_buf_done(&text);
}

bool talk_request_read(const struct talk_frame *f, struct gpuq_arena *a, struct talk_request *out)
{
	struct talk_request r = { 0 };
	const char *end = f->bytes + f->n, *p = f->bytes;
	int form, input, output, tty, replay;
	size_t n = 0;

	if (f->type != TALK_REQUEST || f->n == 0 || end[-1] != '\0' ||
	    sscanf(p, "%d %d %d %d %d %d %d %d", &form, &r.port, &input, &output, &tty, &replay,
		   &r.cols, &r.rows) != 8 ||
	    form != 1)
		return false;
	r.input = input;
	r.output = output;
	r.tty = tty;
	r.replay = replay;
	for (const char *q = p; q < end; q++)
		n += *q == '\0';
	r.command.items = gpuq_arena_calloc(a, n, sizeof(*r.command.items));
	if (!r.command.items)
		return false;
	for (p += strlen(p) + 1; p < end; p += strlen(p) + 1) {
		r.command.items[r.command.n] = gpuq_arena_strdup(a, p);
		if (!r.command.items[r.command.n++])
			return false;
	}
	*out = r;
	return true;
}

bool talk_size_read(const struct talk_frame *f, int *cols, int *rows)
{
	char text[32];
	int c, r;

	snprintf(text, sizeof(text), "%.*s", (int)(f->n < 31 ? f->n : 31), f->bytes);
	if (sscanf(text, "%d %d", &c, &r) != 2 || c < 1 || r < 1 || c > SIZE_MAX_CHARS ||
	    r > SIZE_MAX_CHARS)
		return false;
	*cols = c;
	*rows = r;
	return true;
}
