// hiredis as a codec: its reader and its command formatter; its sockets are not used.
#ifndef MARTLET_CHIREDIS_SHIM_H
#define MARTLET_CHIREDIS_SHIM_H
#include <stdlib.h>
#include <hiredis/hiredis.h>
#endif
