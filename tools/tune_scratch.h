/* The folder of kernels that are only measured, and the signals that end a run: whichever way that ends, the folder goes. */
#ifndef JG_TOOLS_TUNE_SCRATCH_H
#define JG_TOOLS_TUNE_SCRATCH_H

/* Makes a folder for the owner alone in $TMPDIR, else /tmp, and removes those of processes that were killed: it holds a lock in its
 * own. Returns its path, which stays valid until tune_scratch_remove; null, with errno set, if it cannot be made. There is one at a
 * time. */
const char *tune_scratch_make(void);

/* Removes it with the files in it. None is allowed. */
void tune_scratch_remove(void);

/* Lets SIGINT, SIGTERM and SIGHUP ask for an end; a second one removes the folder and ends the process with status 130. `told`, which
 * may be null, is called with the first one, on a thread of its own. To be called before there are threads: they must inherit that
 * these signals are blocked. Returns 0, or -1 if no thread can be started. */
int tune_catch_stop_signals(void (*told)(void *user), void *user);
int tune_stop_requested(void);

#endif
