/* ballast.h - space that is kept for what must still be written when the disk is full
 *
 * Owns     the file DIR/ballast: BALLAST_BYTES that nothing else uses.
 * Touches  that file and its filesystem.
 * Used by  store/. Any thread.
 *
 * While the file is whole, ordinary work goes on. A batch that finds no space gives the file
 * up and is written in its place; from then on new work is refused (ballast_ready), while
 * the end or cancelling of old work still fits. As soon as the filesystem has space for it the
 * file is made again.
 *
 * A database does not shrink: what is removed from it leaves free pages inside. Enough of these
 * (`spare`, in bytes) stand for free space beside the file, and with more of them a smaller file,
 * of what there is, will do until it can be whole: single pages are for ends and cancellations,
 * the file for what is larger than a page.
 */
#ifndef GPUQD_STORE_BALLAST_H
#define GPUQD_STORE_BALLAST_H

#include <stdbool.h>
#include <stdint.h>

#define BALLAST_FILE "ballast"
#define BALLAST_BYTES (8 << 20)
#define BALLAST_SPARE_BYTES (2 * BALLAST_BYTES) /* with so much a smaller file will do */

struct ballast;

/* Make it in dir, or take the one that is there. NULL: out of memory. Where there is no
 * space for it, it is not whole. */
struct ballast *ballast_open(const char *dir);
/* The file stays. NULL is fine. */
void ballast_close(struct ballast *b);

/* Give it up. False: there was none. */
bool ballast_release(struct ballast *b);

/* True if it is there and some space is free beside it; made again where that is possible. */
bool ballast_ready(struct ballast *b, int64_t spare_bytes);

#endif
