// Floods one server from one thread, as fast as possible, until SIGTERM, and prints the results as one line of JSON.
//
//   flooder --port 8080 --template FILE [--seconds N] [--source ADDRESS] [--first N] [--connections 64] [--depth 4]
//   flooder --port 8080 --template FILE [--seconds N] [--source ADDRESS] --held N (--churn | --trickle)
//
// The first form sends complete requests over kept-alive connections, `depth` of them in flight on each. The second one sends the
// template once on each of `held` connections and never ends the request: with --churn the oldest is reset for a new one as
// soon as all are open, with --trickle each sends one more byte every second. --rate N limits the first form to N requests
// a second, and --churn to N connections.
//
// A template may be several, with a byte 0x04 between them, which are sent in turn.
//
// Bytes of the template that are replaced for each request, so that no two are equal:
//   0x01…  digits of a counter, base 62          0x02…  base64url of letters that count, so a multiple of four characters
//   0x03…  eleven bytes, the last three numbers of an IPv4 address

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { INPUT = 32768, BATCH = 1024 };

typedef struct {
    int socket;
    int is_connected;
    char *output;
    size_t length, sent;
    char *input;
    size_t used;
    long body_left;
    int under_way;
    int is_waiting;         // for its turn under --rate
} Connection;

static const char *source = "127.0.0.1", *template_file;
static volatile sig_atomic_t is_over;
static int port, connections = 64, depth = 4, held, churn, trickle, poller;
static double seconds = 600, rate, began;
static uint64_t counter;
static struct { char *text; size_t length; } *templates;
static size_t template_count, template_length;  // the length of the longest
static Connection *all;
static long opened, refused, closed, sent, responded, statuses[600];

static void stop(int number) {
    (void)number;
    is_over = 1;
}

static void fail(const char *what) {
    fprintf(stderr, "flooder: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void read_template(void) {
    FILE *file = fopen(template_file, "rb");
    struct stat about;
    if (!file || fstat(fileno(file), &about) != 0) fail(template_file);
    size_t size = about.st_size;
    char *all = malloc(size + 1), *end = all + size;
    if (!all || fread(all, 1, size, file) != size) fail(template_file);
    fclose(file);
    for (char *at = all; at < end; template_count++) {
        char *next = memchr(at, 4, end - at);
        templates = realloc(templates, (template_count + 1) * sizeof *templates);
        if (!templates) fail("memory");
        templates[template_count].text = at;
        templates[template_count].length = (next ? next : end) - at;
        if (templates[template_count].length > template_length) template_length = templates[template_count].length;
        at = next ? next + 1 : end;
    }
    if (!template_count) fail(template_file);
}

static size_t run_of(const char *text, size_t left) {
    size_t length = 1;
    while (length < left && text[length] == text[0]) length++;
    return length;
}

static void fill_digits(char *to, size_t length, uint64_t value) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    while (length-- > 0) { to[length] = digits[value % 62]; value /= 62; }
}

static void fill_base64(char *to, size_t length, uint64_t value) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (size_t group = 0; group + 4 <= length; group += 4) {
        uint32_t letters = 0;
        for (int i = 0; i < 3; i++) { letters = letters << 8 | ('a' + value % 16); value /= 16; }
        for (int i = 3; i >= 0; i--) { to[group + i] = digits[letters & 63]; letters >>= 6; }
    }
}

static void fill_address(char *to, uint64_t value) {
    // Not in the counter's order, so that consecutive ones are in different networks.
    uint64_t mixed = value * 0x9E3779B97F4A7C15ULL >> 40;
    char text[16];
    unsigned low = mixed % 100, middle = mixed / 100 % 100, high = mixed / 10000 % 100;
    snprintf(text, sizeof text, "1%02u.1%02u.1%02u", low, middle, high);
    memcpy(to, text, 11);
}

static size_t write_request(char *to) {
    static size_t turn;
    uint64_t value = counter++;
    char *template = templates[turn].text;
    size_t whole = templates[turn].length;
    turn = (turn + 1) % template_count;
    memcpy(to, template, whole);
    for (size_t at = 0; at < whole;) {
        unsigned char kind = template[at];
        if (kind < 1 || kind > 3) { at++; continue; }
        size_t length = run_of(template + at, whole - at);
        if (kind == 1) fill_digits(to + at, length, value);
        else if (kind == 2) fill_base64(to + at, length, value);
        else if (length >= 11) fill_address(to + at, value);
        at += length;
    }
    return whole;
}

static void flush(Connection *connection) {
    while (connection->is_connected && connection->sent < connection->length) {
        const char *rest = connection->output + connection->sent;
        ssize_t wrote = send(connection->socket, rest, connection->length - connection->sent, MSG_NOSIGNAL);
        if (wrote <= 0) return;  // a full socket is written to later; other errors show when it is read
        connection->sent += wrote;
    }
}

// Whether the rate permits one more now.
static int may_send(void) {
    return rate <= 0 || sent < (now() - began) * rate;
}

static void begin_batch(Connection *connection) {
    int count = held ? 1 : depth;
    connection->is_waiting = !held && !may_send();
    if (connection->is_waiting) return;
    connection->length = 0;
    for (int i = 0; i < count; i++) connection->length += write_request(connection->output + connection->length);
    connection->sent = 0;
    connection->under_way = count;
    connection->used = 0;
    connection->body_left = 0;
    sent += count;
    flush(connection);
}

static void open_connection(Connection *connection) {
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct linger reset = {.l_onoff = 1};
    int one = 1;
    inet_pton(AF_INET, source, &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection->socket < 0) fail("socket");
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    // Avoids TIME_WAIT, which would exhaust the ports.
    setsockopt(connection->socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    setsockopt(connection->socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(connection->socket, (struct sockaddr *)&from, sizeof from) != 0) fail("bind");
    connection->is_connected = 0;
    connection->under_way = connection->is_waiting = 0;
    connection->length = connection->sent = 0;
    opened++;
    if (connect(connection->socket, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
        refused++;
        close(connection->socket);
        connection->socket = -1;
        return;
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event) != 0) fail("epoll_ctl");
}

static void reopen(Connection *connection) {
    close(connection->socket);
    open_connection(connection);
}

// How many bytes of the input were complete responses or parts of bodies; -1 for anything else.
static long use_input(Connection *connection) {
    size_t at = 0;
    while (at < connection->used) {
        size_t left = connection->used - at;
        char *text = connection->input + at;
        if (connection->body_left > 0) {
            size_t some = left < (size_t)connection->body_left ? left : (size_t)connection->body_left;
            connection->body_left -= some;
            at += some;
        } else {
            char *end = memmem(text, left, "\r\n\r\n", 4);
            if (!end) break;
            if (left < 12 || memcmp(text, "HTTP/1.1 ", 9) != 0) return -1;
            *end = 0;
            int status = atoi(text + 9);
            char *length = strcasestr(text, "\r\ncontent-length:");
            connection->body_left = length ? atol(length + 17) : 0;
            at = end + 4 - connection->input;
            if (status < 200) continue;
            if (status < 600) statuses[status]++;
            responded++;
            connection->under_way--;
        }
    }
    return at;
}

static void receive(Connection *connection) {
    for (;;) {
        ssize_t got = recv(connection->socket, connection->input + connection->used, INPUT - 1 - connection->used, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            if (connection->is_connected) closed++; else refused++;
            reopen(connection);
            return;
        }
        connection->used += got;
        long used = use_input(connection);
        if (used < 0 || (used == 0 && connection->used >= INPUT - 1)) {
            // A TLS record, or anything else that is not HTTP: not read.
            connection->used = 0;
            continue;
        }
        memmove(connection->input, connection->input + used, connection->used - used);
        connection->used -= used;
        if (connection->under_way == 0 && connection->body_left == 0) {
            if (held) { closed++; reopen(connection); return; }
            begin_batch(connection);
        }
    }
}

static void serve(double wait) {
    static struct epoll_event events[BATCH];
    int ready = epoll_wait(poller, events, BATCH, wait > 0 ? (int)(wait * 1000) + 1 : 0);
    for (int i = 0; i < ready; i++) {
        Connection *connection = events[i].data.ptr;
        if (connection->socket < 0) continue;
        if ((events[i].events & EPOLLOUT) && !(events[i].events & EPOLLERR)) {
            if (!connection->is_connected) { connection->is_connected = 1; begin_batch(connection); }
            else flush(connection);
        }
        if (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) receive(connection);
    }
}

static void trickle_all(void) {
    for (int i = 0; i < connections; i++) {
        Connection *connection = &all[i];
        if (connection->socket >= 0 && connection->is_connected && connection->sent == connection->length) {
            send(connection->socket, "x", 1, MSG_NOSIGNAL);
        }
    }
}

static void run(void) {
    // --seconds stops it when the parent process cannot any more.
    double end = began + seconds, next = began + 1;
    int started = 0, oldest = 0, turn = 0;
    while (!is_over && now() < end) {
        // New connections are opened in small groups, between which the others are served.
        int group = held ? 64 : connections;
        for (; group > 0 && started < connections; group--) open_connection(&all[started++]);
        for (; group > 0 && churn && started == connections; group--) {
            if (rate > 0 && opened >= (now() - began) * rate) break;
            reopen(&all[oldest]);
            oldest = (oldest + 1) % connections;
        }
        for (int i = 0; i < started && !held; i++) if (all[i].socket < 0) open_connection(&all[i]);
        for (int i = 0; i < connections && rate > 0 && may_send(); i++, turn = (turn + 1) % connections) {
            if (all[turn].is_waiting) begin_batch(&all[turn]);
        }
        serve(started < connections ? 0 : rate > 0 ? 0.0005 : held && churn ? 0 : 0.05);
        if (trickle && now() >= next) { trickle_all(); next = now() + 1; }
    }
}

static void report(double took) {
    printf("{\"seconds\": %.3f, \"connections\": %ld, \"refused\": %ld, \"closed\": %ld, ", took, opened, refused, closed);
    printf("\"sent\": %ld, \"responded\": %ld, \"statuses\": {", sent, responded);
    const char *comma = "";
    for (int i = 0; i < 600; i++) if (statuses[i]) { printf("%s\"%d\": %ld", comma, i, statuses[i]); comma = ", "; }
    printf("}}\n");
}

static void read_arguments(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (!strcmp(name, "--churn")) { churn = 1; continue; }
        if (!strcmp(name, "--trickle")) { trickle = 1; continue; }
        const char *value = i + 1 < argc ? argv[++i] : "";
        if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--template")) template_file = value;
        else if (!strcmp(name, "--source")) source = value;
        else if (!strcmp(name, "--first")) counter = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--connections")) connections = atoi(value);
        else if (!strcmp(name, "--depth")) depth = atoi(value);
        else if (!strcmp(name, "--held")) connections = held = atoi(value);
        else if (!strcmp(name, "--rate")) rate = atof(value);
        else if (!strcmp(name, "--seconds")) seconds = atof(value);
        else { fprintf(stderr, "flooder: what is %s?\n", name); exit(64); }
    }
    if (port && template_file && connections > 0 && depth > 0) return;
    fprintf(stderr, "flooder: see the head of flooder.c\n");
    exit(64);
}

int main(int argc, char **argv) {
    struct rlimit limit;
    read_arguments(argc, argv);
    read_template();
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    poller = epoll_create1(EPOLL_CLOEXEC);
    all = calloc(connections, sizeof *all);
    if (poller < 0 || !all) fail("start");
    for (int i = 0; i < connections; i++) {
        all[i].socket = -1;
        all[i].output = malloc(template_length * (held ? 1 : depth));
        // Held connections get one short response each, if any.
        all[i].input = malloc(INPUT);
        if (!all[i].output || !all[i].input) fail("memory");
    }
    signal(SIGTERM, stop);
    began = now();
    run();
    report(now() - began);
    return 0;
}
