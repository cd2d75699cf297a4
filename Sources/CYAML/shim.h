#ifndef MARTLET_CYAML_SHIM_H
#define MARTLET_CYAML_SHIM_H
#include <yaml.h>
#endif
