/* tty.h - our own terminal as the other end of somewhere else's
 *
 * Owns     the terminal's settings while it is raw, and the signals of a session.
 * Touches  the terminal on standard input, signal handlers.
 * Used by  stdio.c.
 *
 * Whatever ends the process, the settings come back: a return, exit(), and every signal
 * that can be caught; a stop by SIGTSTP too, until it is continued.
 */
#ifndef GPUQ_TTY_H
#define GPUQ_TTY_H

#include <signal.h>
#include <stdbool.h>

/* Is there a terminal on standard input? */
bool tty_there(void);

/* Each key as it is pressed, to somewhere else; tty_restore() ends that, any number of
 * times. false: no terminal, or it will not. */
bool tty_raw(void);
void tty_restore(void);

/* Columns and rows; false when it does not tell. */
bool tty_size(int *cols, int *rows);

/* Let signals interrupt a wait and be asked for afterwards: SIGINT, SIGTERM, SIGHUP,
 * SIGQUIT and SIGWINCH. They are held back but during ppoll() with *during. */
void tty_signals(sigset_t *during);
void tty_signals_done(void); /* they are not held back any more */
int tty_signal_taken(void); /* the last that asked us to end; 0 = none */
bool tty_resized(void); /* since the last call */

#endif
