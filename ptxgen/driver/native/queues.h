/* Streams and the operations that they have been given (queues.c). */
#ifndef PTXGEN_QUEUES_H
#define PTXGEN_QUEUES_H

#include "standin.h"

enum { STREAM_MAGIC = 0x53545245, NON_BLOCKING = 1 };

extern struct Stream default_stream, *all_streams;
void add_stream(struct Stream *stream);
void wait_in_stream(struct Stream *stream, struct Point point);
void wait_for_point(struct Point point);
Result query_point(struct Point point);
Result after_waiting(void);
/* A number below `choices`, drawn under `random`. */
u32 draw(u32 choices);

#endif
