// c-ares: names to addresses by DNS and the hosts file, without blocking.
#ifndef MARTLET_CCARES_SHIM_H
#define MARTLET_CCARES_SHIM_H

#include <ares.h>
#include <stddef.h>
#include <sys/time.h>

typedef void (*martlet_ares_watch)(void *, ares_socket_t, int, int);

// Opens a channel that looks names up in the hosts file ("f") or by DNS ("b"). `watch` gets its descriptors.
static inline int martlet_ares_open(
    ares_channel *channel, const char *lookups, int milliseconds, int tries, martlet_ares_watch watch, void *context) {
    struct ares_options options = {0};
    options.lookups = (char *)lookups;
    options.timeout = milliseconds;
    options.tries = tries;
    options.sock_state_cb = watch;
    options.sock_state_cb_data = context;
    return ares_init_options(
        channel, &options, ARES_OPT_LOOKUPS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
}
// Until the next timeout, rounded up; -1 without one.
static inline long martlet_ares_milliseconds(ares_channel channel) {
    struct timeval time;
    if (ares_timeout(channel, NULL, &time) == NULL) return -1;
    return time.tv_sec * 1000 + (time.tv_usec + 999) / 1000;
}
static inline void martlet_ares_process(ares_channel channel, ares_socket_t fd, int readable, int writable) {
    ares_process_fd(channel, readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
}
static inline void martlet_ares_process_timeouts(ares_channel channel) {
    ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
// Calls back with all addresses of a family, in no order.
static inline void martlet_ares_look_up(
    ares_channel channel, const char *name, int family, ares_addrinfo_callback callback, void *context) {
    struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT, .ai_family = family};
    ares_getaddrinfo(channel, name, NULL, &hints, callback, context);
}
#endif
