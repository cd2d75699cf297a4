#ifndef MARTLET_CSQLITE_SHIM_H
#define MARTLET_CSQLITE_SHIM_H

#include <sqlite3.h>

#endif
