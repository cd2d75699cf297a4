#ifndef MARTLET_CCRYPT_SHIM_H
#define MARTLET_CCRYPT_SHIM_H

#include <crypt.h>

#endif
