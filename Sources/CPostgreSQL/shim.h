#ifndef MARTLET_CPOSTGRESQL_SHIM_H
#define MARTLET_CPOSTGRESQL_SHIM_H

#include <libpq-fe.h>
#include <string.h>

/* The SQLSTATE of an error: PG_DIAG_SQLSTATE is a character macro. */
static inline const char *martlet_pq_state(const PGresult *result) { return PQresultErrorField(result, 'C'); }

/* Its message without detail and context: PG_DIAG_MESSAGE_PRIMARY. */
static inline const char *martlet_pq_message(const PGresult *result) { return PQresultErrorField(result, 'M'); }

static inline void martlet_pq_ignore_notice(void *context, const PGresult *result) {
    (void)context;
    (void)result;
}
/* Without a receiver, libpq writes notices to stderr. */
static inline void martlet_pq_silence(PGconn *connection) {
    PQsetNoticeReceiver(connection, martlet_pq_ignore_notice, NULL);
}

static inline void martlet_pq_wipe(void *bytes, size_t count) {
    volatile unsigned char *byte = (volatile unsigned char *)bytes;
    while (count-- > 0) *byte++ = 0;
}
/* Frees options after wiping their values: one of them may be a password. */
static inline void martlet_pq_free_options(PQconninfoOption *options) {
    for (PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++)
        if (option->val != NULL) martlet_pq_wipe(option->val, strlen(option->val));
    PQconninfoFree(options);
}

#endif
