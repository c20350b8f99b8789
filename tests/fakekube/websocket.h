/* websocket.h - the server's end of a WebSocket
 *
 * Owns     the handshake and the frames of one connection.
 * Touches  the connection through http.h.
 *
 * Only messages of one frame, as clients of exec and similar calls send them. An error of
 * the client ends the connection.
 */
#ifndef FAKEKUBE_WEBSOCKET_H
#define FAKEKUBE_WEBSOCKET_H

#include "http.h"

enum ws_op { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

struct ws;

/* A way out of a request (http.h). message is called for each that comes, p lives until it
 * returns; gone once, when the connection goes other than by ws_end() or ws_kill(), which both
 * forget the ws. NULL: the client has left. */
struct ws *ws_upgrade(struct http_req *req, const char *protocol,
		      void (*message)(void *arg, enum ws_op op, const char *p, size_t n),
		      void (*gone)(void *arg), void *arg);
void ws_send(struct ws *w, enum ws_op op, const void *p, size_t n);
void ws_end(struct ws *w); /* in order */
void ws_kill(struct ws *w, bool reset); /* in the middle of it */
void ws_freeze(struct ws *w); /* nothing more is said, and the connection stays */

#endif
