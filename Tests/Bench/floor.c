// The least that a proxy can cost: it copies bytes between a client and an upstream and reads none of them. One thread, one
// edge-triggered epoll, one upstream connection for each client connection, no parsing, no logging. What a proxy needs beyond
// this is what its own work costs; what this needs is the kernel's.
//
//   floor PORT UPSTREAM      UPSTREAM is a port of 127.0.0.1, or the path of a Unix socket

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER = 65536, EVENTS = 256 };

typedef struct Side {
    int socket;
    struct Side *peer;
    int is_closed;
    size_t start, end;  // of what was received here and not yet sent to the peer
    char *unsent;
} Side;

static struct sockaddr_storage upstream;
static socklen_t upstream_length;
static int poller;
static char shared[BUFFER];
static Side *closed[2 * EVENTS];  // their memory is freed after the events of one wait
static int closed_count;

static void fail(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(69);
}

static void resolve(const char *text) {
    if (text[0] == '/') {
        struct sockaddr_un *address = (struct sockaddr_un *)&upstream;
        address->sun_family = AF_UNIX;
        if (strlen(text) >= sizeof address->sun_path) { errno = ENAMETOOLONG; fail(text); }
        strcpy(address->sun_path, text);
        upstream_length = sizeof *address;
    } else {
        struct sockaddr_in *address = (struct sockaddr_in *)&upstream;
        address->sin_family = AF_INET;
        address->sin_port = htons(atoi(text));
        address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        upstream_length = sizeof *address;
    }
}

static Side *watch(int socket) {
    Side *side = calloc(1, sizeof *side);
    if (!side) fail("memory");
    side->socket = socket;
    int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = side};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) != 0) fail("epoll_ctl");
    return side;
}

static void accept_all(int listener) {
    for (;;) {
        int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0) return;
        int server = socket(upstream.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (server < 0) fail("socket");
        if (connect(server, (struct sockaddr *)&upstream, upstream_length) != 0 && errno != EINPROGRESS) {
            close(server);
            close(client);
            continue;
        }
        Side *near = watch(client), *far = watch(server);
        near->peer = far;
        far->peer = near;
    }
}

static void close_both(Side *side) {
    Side *both[] = {side, side->peer};
    for (int i = 0; i < 2; i++) {
        if (both[i]->is_closed) continue;
        both[i]->is_closed = 1;
        close(both[i]->socket);
        closed[closed_count++] = both[i];
    }
}

// Sends bytes that came from `side`, and keeps those that the kernel does not take. 0 when the peer is gone.
static int pass(Side *side, char *bytes, size_t count) {
    ssize_t sent = send(side->peer->socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != ENOTCONN) return 0;
    if (sent < 0) sent = 0;
    if ((size_t)sent == count) return 1;
    if (!side->unsent && !(side->unsent = malloc(BUFFER))) fail("memory");
    memmove(side->unsent, bytes + sent, count - sent);
    side->start = 0;
    side->end = count - sent;
    return 1;
}

static void receive(Side *side) {
    while (side->start == side->end) {
        ssize_t count = recv(side->socket, shared, BUFFER, 0);
        if (count < 0 && (errno == EAGAIN || errno == ENOTCONN)) return;
        if (count <= 0 || !pass(side, shared, count)) return close_both(side);
        // A short read has emptied the socket: the next bytes are an event of their own.
        if (count < BUFFER) return;
    }
}

static void send_rest(Side *side) {
    Side *from = side->peer;
    if (from->start == from->end) return;
    size_t start = from->start, end = from->end;
    from->start = from->end = 0;
    if (!pass(from, from->unsent + start, end - start)) return close_both(side);
    if (from->start == from->end) receive(from);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: floor PORT UPSTREAM\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    resolve(argv[2]);
    poller = epoll_create1(EPOLL_CLOEXEC);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (poller < 0 || listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0) fail("bind");
    if (listen(listener, 4096) != 0) fail("listen");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            Side *side = events[i].data.ptr;
            if (!side) { accept_all(listener); continue; }
            if (!side->is_closed && events[i].events & EPOLLOUT) send_rest(side);
            if (!side->is_closed && events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) receive(side);
        }
        while (closed_count > 0) {
            Side *side = closed[--closed_count];
            free(side->unsent);
            free(side);
        }
    }
}
