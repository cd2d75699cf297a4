// Requests the same path of one HTTP/1.1 server repeatedly, each request with a token of a list, and prints the results as one
// line of JSON. Unlike wrk it can send requests at a fixed rate with the latency counted from when they were due (so a stalled
// server does not stall the measurement), an exact number of requests, and tokens that are used once.
//
//   generator --port 8080 --path /1k --tokens FILE [--first N] [--distinct N] --connections 64 (--count N | --rate N --seconds N)
//        [--header "Name: value"]… [--body BYTES]
//
// The tokens are `distinct` lines of the file from line `first` on, in turn, starting over after the last line of the file.
// With --rate the loop is open, without it each connection sends the next request after each response. Responses need a
// Content-Length.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_LIMIT = 16384 };

typedef struct {
    int socket;
    char *out;              // the rest of the request
    size_t unsent;
    char *request;          // the buffer that `out` points into
    char head[HEAD_LIMIT];  // the response head received so far
    size_t head_length;
    long body_left;         // -1 while the head is not complete
    int64_t due;
} Connection;

static const char *path = "/", *token_file, *headers = "";
static char header_text[65536];
static int port, connections = 64, poller;
static long count, rate, body_bytes, first, distinct, token_count;
static double seconds = 1;
static struct { const char *text; size_t length; } *tokens;
static size_t request_limit;
static Connection *all, **idle;
static int idle_count;
static uint32_t *latencies;
static long total, started, finished, errors, rejections;
static char *body;

static void fail(const char *what) {
    fprintf(stderr, "generator: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void read_tokens(void) {
    struct stat about;
    int file = open(token_file, O_RDONLY);
    if (file < 0 || fstat(file, &about) != 0) fail(token_file);
    const char *text = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (text == MAP_FAILED) fail(token_file);
    const char *end = text + about.st_size;
    while (text < end) {
        const char *next = memchr(text, '\n', end - text);
        if (!next) next = end;
        if (token_count % 4096 == 0) {
            tokens = realloc(tokens, (token_count + 4096) * sizeof *tokens);
            if (!tokens) fail("tokens");
        }
        tokens[token_count].text = text;
        tokens[token_count].length = next - text;
        if (tokens[token_count].length > request_limit) request_limit = tokens[token_count].length;
        token_count++;
        text = next + 1;
    }
    if (distinct <= 0) distinct = 1;
    if (distinct > token_count) {
        fprintf(stderr, "generator: %s has only %ld of %ld tokens\n", token_file, token_count, distinct);
        exit(1);
    }
}

static void open_socket(Connection *connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->socket < 0) fail("socket");
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(connection->socket, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    fcntl(connection->socket, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event);
    connection->body_left = -1;
    connection->head_length = connection->unsent = 0;
    connection->due = 0;
}

static void finish(Connection *connection, int failed) {
    if (connection->due) {
        int64_t took = (now() - connection->due) / 1000;
        if (finished < total) latencies[finished] = took > UINT32_MAX ? UINT32_MAX : took;
        finished++;
        errors += failed;
    }
    connection->due = 0;
    connection->body_left = -1;
    connection->head_length = 0;
    if (failed) {
        close(connection->socket);
        open_socket(connection);
    }
    idle[idle_count++] = connection;
}

static void send_more(Connection *connection) {
    while (connection->unsent > 0) {
        ssize_t sent = send(connection->socket, connection->out, connection->unsent, MSG_NOSIGNAL);
        if (sent < 0) return;  // errors show when the response is read
        connection->out += sent;
        connection->unsent -= sent;
    }
}

static void begin(Connection *connection, int64_t due) {
    long turn = (first + started++ % distinct) % token_count;
    int length = snprintf(
        connection->request, request_limit, "%s %s HTTP/1.1\r\nHost: bench.example\r\nAuthorization: Bearer %.*s\r\n%s",
        body_bytes ? "POST" : "GET", path, (int)tokens[turn].length, tokens[turn].text, headers);
    if (body_bytes) {
        length += snprintf(connection->request + length, request_limit - length, "Content-Length: %ld\r\n", body_bytes);
    }
    memcpy(connection->request + length, "\r\n", 2);
    if (body_bytes) memcpy(connection->request + length + 2, body, body_bytes);
    connection->out = connection->request;
    connection->unsent = length + 2 + body_bytes;
    connection->due = due;
    send_more(connection);
}

// The end of the head and the length of the body; 0 while incomplete, -1 when it cannot be parsed.
static int read_head(Connection *connection) {
    connection->head[connection->head_length] = 0;
    char *end = strstr(connection->head, "\r\n\r\n");
    if (!end) return connection->head_length + 1 < HEAD_LIMIT ? 0 : -1;
    char *length = strcasestr(connection->head, "\r\ncontent-length:");
    int status = atoi(connection->head + 9);
    if (!length || length > end) return -1;
    if (status < 200 || status > 299) rejections++;
    connection->body_left = atol(length + 17) - (connection->head + connection->head_length - (end + 4));
    return connection->body_left < 0 ? -1 : 1;
}

static void receive(Connection *connection) {
    static char sink[262144];
    for (;;) {
        int in_head = connection->body_left < 0;
        char *to = in_head ? connection->head + connection->head_length : sink;
        size_t room = in_head ? HEAD_LIMIT - 1 - connection->head_length : sizeof sink;
        ssize_t got = recv(connection->socket, to, room, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0 || !connection->due) {
            if (connection->due) finish(connection, 1);
            else if (got <= 0) {  // closed while idle, which servers may do
                close(connection->socket);
                open_socket(connection);
            }
            return;
        }
        if (in_head) {
            connection->head_length += got;
            int read = read_head(connection);
            if (read < 0) { finish(connection, 1); return; }
            if (read == 0) continue;
        } else {
            connection->body_left -= got;
        }
        if (connection->body_left == 0) { finish(connection, 0); return; }
    }
}

static int by_size(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void report(double took) {
    static const double points[] = {0, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100};
    qsort(latencies, finished, sizeof *latencies, by_size);
    printf("{\"requests\": %ld, \"errors\": %ld, \"rejections\": %ld, \"seconds\": %.3f, \"microseconds\": {",
           finished, errors, rejections, took);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        long index = finished * points[i] / 100;
        if (index >= finished) index = finished - 1;
        printf("%s\"%g\": %u", i ? ", " : "", points[i], finished ? latencies[index] : 0);
    }
    printf("}}\n");
}

static void run(void) {
    struct epoll_event events[1024];
    int64_t began = now(), gap = rate ? 1000000000LL / rate : 0, deadline = began + (int64_t)((seconds + 10) * 1e9);
    while (finished < total) {
        int64_t time = now();
        if (rate && time > deadline) break;
        while (started < total && idle_count > 0 && (!rate || began + started * gap <= time)) {
            int64_t due = rate ? began + started * gap : now();
            begin(idle[--idle_count], due);
        }
        int64_t wait = 1000000000;
        if (rate && started < total && idle_count > 0) {
            wait = began + started * gap - now();
            if (wait < 0) wait = 0;
        }
        struct timespec timeout = {wait / 1000000000, wait % 1000000000};
        int ready = epoll_pwait2(poller, events, 1024, &timeout, NULL);
        for (int i = 0; i < ready; i++) {
            Connection *connection = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) send_more(connection);
            if (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) receive(connection);
        }
    }
    errors += total - finished;
    report((now() - began) / 1e9);
}

static void read_arguments(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--path")) path = value;
        else if (!strcmp(name, "--tokens")) token_file = value;
        else if (!strcmp(name, "--first")) first = atol(value);
        else if (!strcmp(name, "--distinct")) distinct = atol(value);
        else if (!strcmp(name, "--connections")) connections = atoi(value);
        else if (!strcmp(name, "--count")) count = atol(value);
        else if (!strcmp(name, "--rate")) rate = atol(value);
        else if (!strcmp(name, "--seconds")) seconds = atof(value);
        else if (!strcmp(name, "--body")) body_bytes = atol(value);
        else if (!strcmp(name, "--header")) {
            size_t used = strlen(header_text);
            snprintf(header_text + used, sizeof header_text - used, "%s\r\n", value);
            headers = header_text;
        } else { fprintf(stderr, "generator: what is %s?\n", name); exit(64); }
    }
    total = rate ? (long)(rate * seconds) : count;
    if (!port || !token_file || total <= 0 || connections <= 0) { fprintf(stderr, "generator: see the head of generator.c\n"); exit(64); }
}

int main(int argc, char **argv) {
    read_arguments(argc, argv);
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    read_tokens();
    request_limit += strlen(path) + strlen(headers) + 256;
    body = calloc(1, body_bytes + 1);
    all = calloc(connections, sizeof *all);
    idle = calloc(connections, sizeof *idle);
    latencies = calloc(total, sizeof *latencies);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (!body || !all || !idle || !latencies || poller < 0) fail("start");
    for (int i = 0; i < connections; i++) {
        all[i].request = malloc(request_limit + body_bytes);
        open_socket(&all[i]);
        idle[idle_count++] = &all[i];
    }
    run();
    return 0;
}
