#include "CStart.h"

#include <stddef.h>
#include <unistd.h>

// Swift looks for the arguments before the first variable of the environment, where they are no longer once a preloaded
// library has set or removed a variable. The loader passes them to every function of .init_array.

extern char **environ;

static int count;
static char **arguments;
static char *no_variables[] = {NULL};

// The first priority that is not reserved: before every other constructor of the program, so before Swift reads the
// environment, which a preloaded library may have removed altogether.
__attribute__((constructor(101))) static void keep_arguments(int argc, char **argv) {
    count = argc;
    arguments = argv;
    if (environ == NULL) environ = no_variables;
}

int martlet_argument_count(void) { return count; }

const char *martlet_argument(int index) { return index >= 0 && index < count ? arguments[index] : NULL; }
