#ifndef MARTLET_CARGON2_SHIM_H
#define MARTLET_CARGON2_SHIM_H

#include <argon2.h>

#endif
