/* Tables of all public names; what nothing implements says so by name. The lists are generated (tools/driver_names.py).
 *
 * A name that another file defines replaces the weak definition here.
 */
#include <stddef.h>

extern int unsupported(const char *name);

#define API __attribute__((visibility("default"), weak))
#define DRIVER_FUNCTION(name)                                                                                         \
    API int name(void) {                                                                                              \
        return unsupported(#name);                                                                                    \
    }
#define RUNTIME_FUNCTION(name) DRIVER_FUNCTION(name)
#include "driver_functions.h"
#include "runtime_functions.h"

struct DriverName {
    const char *name;
    int version;
    void *function;
    const char *exported;
};
#define DRIVER_VERSION(name, version, exported) {#name, version, (void *)exported, #exported},
const struct DriverName driver_names[] = {
#include "driver_versions.h"
    {NULL, 0, NULL, NULL},
};

struct RuntimeName {
    const char *name;
    void *function;
};
#undef RUNTIME_FUNCTION
#define RUNTIME_FUNCTION(name) {#name, (void *)name},
const struct RuntimeName runtime_names[] = {
#include "runtime_functions.h"
    {NULL, NULL},
};
