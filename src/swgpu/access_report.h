/* What access.c says when an access is not allowed. Each raises the fault and returns 1. */
#ifndef SWGPU_ACCESS_REPORT_H
#define SWGPU_ACCESS_REPORT_H

#include "access.h"
#include "memory.h"

/* a: the allocation that holds the lane's address, or null. The reason is found again: freed, bounds or alignment. */
int access_report_global(const access_request *r, unsigned lane, const allocation *a);

/* The first bad lane of a mask in a space of so many bytes that begins at start. */
int access_report_window(const access_request *r, uint32_t mask, const char *space, uint64_t start, uint64_t bytes);

/* written: a byte for each of the access, at least one of them 0. */
int access_report_unwritten(const access_request *r, unsigned lane, const uint8_t *written);

/* The access is in no row of a described operand, or writes to one that is an input. */
int access_report_operand(const access_request *r, unsigned lane);

#endif
