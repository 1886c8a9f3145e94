/* A cache file that is damaged as a whole, such as one that was cut off: made anew, for a device that nobody looks after. */
#ifndef JG_TOOLS_PREWARM_REPAIR_H
#define JG_TOOLS_PREWARM_REPAIR_H

/* Makes the file at `path` (null: the default one) empty if the library can read none of it. A file that is sound, is not there, or
 * is another program's or version's is left as it is; single damaged records too, since the library makes those anew by itself.
 * Sets *repaired. Blocks for disk. Returns null, or why it could not be done: jg_last_error's text. */
const char *prewarm_repair(const char *path, int *repaired);

#endif
