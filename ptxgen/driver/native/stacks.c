/* Functions of libraries whose runtime has no names left: what they export is replaced instead, one table per stack. */
#include "standin.h"

#include <string.h>

void *warp_function(const char *name);

void *stack_function(const char *name) {
    return !strncmp(name, "wp_", 3) ? warp_function(name) : NULL;
}
