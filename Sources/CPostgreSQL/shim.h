#ifndef MARTLET_CPOSTGRESQL_SHIM_H
#define MARTLET_CPOSTGRESQL_SHIM_H

#include <libpq-fe.h>

#endif
