/* Stream capture: what a capture forbids, which streams are in it, and whether they all come back to where it began.
 *
 * Two kinds of calls fail. What a capture's mode and the calling thread's forbid: calls that are "potentially unsafe", such
 * as cuMemAlloc; see cuThreadExchangeStreamCaptureMode. And, whatever the modes and the thread, what conflicts with the
 * capture itself: waiting for a stream in it, or for its context; and the legacy stream, which comes after all blocking
 * streams, while one of those is captured. A call that fails so invalidates the capture, but for cuStreamIsCapturing;
 * so does a launch or a copy that fails in a captured stream.
 *
 * All functions run under the state's lock. */
#ifndef SWGPU_CAPTURE_H
#define SWGPU_CAPTURE_H

#include "graph.h"

/* The mode of the calling thread; mode becomes the one before. */
CUresult capture_exchange_mode(CUstreamCaptureMode *mode);

/* Whether the captures under way allow a call with these needs (entries.h). */
CUresult capture_check_call(unsigned needs);

/* What a call does that puts something into a stream: *captured becomes the stream if that belongs into its capture, null if
 * it is to be done. */
CUresult capture_use(CUstream stream, gpu_object **captured);

/* What a call does that waits for a stream or an event, or asks whether it is done. */
CUresult capture_check_stream(CUstream stream);
CUresult capture_check_event(const gpu_object *event);
CUresult capture_check_recorded(const gpu_object *event); /* that it was not recorded in a capture */

CUresult capture_check_destroy(const gpu_object *stream);

CUresult capture_begin(CUstream stream, CUstreamCaptureMode mode);
CUresult capture_end(CUstream stream, CUgraph *graph); /* *graph is null after a failure */
CUresult capture_status(CUstream stream, CUstreamCaptureStatus *status);
void capture_invalidate(const gpu_object *stream);

/* A new node of a stream in a capture, or null if out of memory. */
gpu_node *capture_add(gpu_object *stream, CUgraphNodeType type);

/* The event stands for what its stream holds in the capture (captured), or is an ordinary one again (null). */
void capture_record(gpu_object *event, const gpu_object *captured);

/* The stream goes on after the event, if that is a captured one: it may join the event's capture by that. */
CUresult capture_wait(CUstream stream, const gpu_object *event);

/* Ends the context's captures; returns how many there were. */
unsigned capture_end_all(gpu_context *c);

#endif
