#ifndef MARTLET_CSQLITE_SHIM_H
#define MARTLET_CSQLITE_SHIM_H

#include <sqlite3.h>

/* Defensive mode against corrupt files, and an untrusted schema that cannot call application functions. */
static inline int martlet_sqlite_harden(sqlite3 *database) {
    int status = sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    if (status != SQLITE_OK) return status;
    return sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
}

/* The bytes are copied (SQLITE_TRANSIENT). */
static inline int martlet_sqlite_bind_text(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_text(statement, index, (const char *)bytes, count, SQLITE_TRANSIENT);
}

#endif
