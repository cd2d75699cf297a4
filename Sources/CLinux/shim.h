// Linux calls and constants that Swift's Glibc overlay lacks: variadic functions, macros, GNU extensions.
#ifndef MARTLET_CLINUX_SHIM_H
#define MARTLET_CLINUX_SHIM_H

// Without _GNU_SOURCE, which changes structures (fd_set) that Swift's Glibc module declares without it.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

int accept4(int, struct sockaddr *, socklen_t *, int);
int pipe2(int[2], int);
int pthread_setname_np(pthread_t, const char *);
int sem_clockwait(sem_t *, clockid_t, const struct timespec *);
void explicit_bzero(void *, size_t);

// Grows the calling thread's heap by `size` bytes and populates its pages in one call: glibc would grow it page by
// page, with a system call and a page fault each. The freed memory remains at the top of the heap, up to glibc's trim
// threshold, and serves the next allocations.
static inline void martlet_stretch_heap(size_t size) {
    char *memory = (char *)malloc(size);
    if (!memory) return;
#ifdef MADV_POPULATE_WRITE
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)memory + page - 1) & ~(page - 1), end = ((uintptr_t)memory + size) & ~(page - 1);
    int reason = errno;
    if (end > first) madvise((void *)first, end - first, MADV_POPULATE_WRITE);
    errno = reason;
#endif
    free(memory);
}

// Returns freed memory to the system.
static inline void martlet_trim_heap(void) { malloc_trim(0); }

// Direct system calls for the request path: the wrappers of the C library are cancellation points, which costs about
// thirty instructions each, and our threads are never cancelled. Errors are reported in errno as usual.
// A simulated world defines MARTLET_INDIRECT_CALLS: it takes the place of `syscall`.
static inline long martlet_system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(MARTLET_INDIRECT_CALLS)
    return syscall(number, a, b, c, d, e, f);
#elif defined(__x86_64__) && !defined(__ILP32__)
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__) && !defined(__ILP32__)
    register long which __asm__("x8") = number;
    register long result __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(result)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
#else
    return syscall(number, a, b, c, d, e, f);
#endif
#if !defined(MARTLET_INDIRECT_CALLS) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__ILP32__)
    if (__builtin_expect(result < 0, 0)) {
        errno = (int)-result;
        return -1;
    }
    return result;
#endif
}
/* send(2), recv(2) and epoll_wait(2): see martlet_system_call. What a signal interrupts has moved nothing and is repeated
   here: epoll reports a descriptor only after EAGAIN again. */
static inline ssize_t martlet_send(int fd, const void *bytes, size_t count, int flags) {
    ssize_t sent;
    do {
#ifdef SYS_sendto
        sent = martlet_system_call(SYS_sendto, fd, (long)bytes, (long)count, flags, 0, 0);
#else
        sent = send(fd, bytes, count, flags);
#endif
    } while (__builtin_expect(sent < 0, 0) && errno == EINTR);
    return sent;
}
static inline ssize_t martlet_receive(int fd, void *bytes, size_t count, int flags) {
    ssize_t received;
    do {
#ifdef SYS_recvfrom
        received = martlet_system_call(SYS_recvfrom, fd, (long)bytes, (long)count, flags, 0, 0);
#else
        received = recv(fd, bytes, count, flags);
#endif
    } while (__builtin_expect(received < 0, 0) && errno == EINTR);
    return received;
}
static inline int martlet_epoll_wait(int epoll, struct epoll_event *events, int count, int milliseconds) {
#ifdef SYS_epoll_wait
    return (int)martlet_system_call(SYS_epoll_wait, epoll, (long)events, count, milliseconds, 0, 0);
#else
    return (int)martlet_system_call(SYS_epoll_pwait, epoll, (long)events, count, milliseconds, 0, 0);
#endif
}
// Waits for events. Returns how many descriptors have some, which is 0 after the time and may be 0 before it. Where the
// call fails, which takes no time, a pause is the wait: a loop around it does not spin.
static inline int martlet_poll(struct pollfd *descriptors, nfds_t count, int milliseconds) {
    int ready = poll(descriptors, count, milliseconds);
    if (ready >= 0) return ready;
    int pause = milliseconds < 0 || milliseconds > 20 ? 20 : milliseconds;
    if (errno != EINTR) usleep((useconds_t)pause * 1000);
    return 0;
}
static inline int martlet_epoll_add(int epoll, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}
static inline int martlet_epoll_modify(int epoll, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}
static inline int martlet_epoll_remove(int epoll, int fd) { return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL); }
static inline uint64_t martlet_epoll_data(const struct epoll_event *event) { return event->data.u64; }

static inline int martlet_accept(int fd, struct sockaddr_storage *address, socklen_t *length) {
    return accept4(fd, (struct sockaddr *)address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
/* Selects a congestion control without pacing, unless the system's default is one. The loopback is not congested, and
   pacing (bbr) arms a timer for many of the packets. */
static inline int martlet_do_not_pace(int fd) {
    char name[16] = {0};
    socklen_t length = sizeof name;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return -1;
    if (strncmp(name, "reno", sizeof name) == 0 || strncmp(name, "cubic", sizeof name) == 0) return 0;
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

// A socket filter that drops every segment with SYN, and passes all others: the 14th byte of the TCP header has the flags
// (RFC 9293 section 3.1).
static inline int martlet_drop_syn(int fd) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x02, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}
static inline int martlet_bind(int fd, const void *address, socklen_t length) {
    return bind(fd, (const struct sockaddr *)address, length);
}
static inline int martlet_connect(int fd, const void *address, socklen_t length) {
    return connect(fd, (const struct sockaddr *)address, length);
}
static inline int martlet_local_name(int fd, struct sockaddr_storage *address, socklen_t *length) {
    return getsockname(fd, (struct sockaddr *)address, length);
}
static inline int martlet_is_connected(int fd) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0;
}
/* Whether there is a socket file at a path, and its device and inode. */
static inline int martlet_socket_file(const char *path, uint64_t *device, uint64_t *inode) {
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode)) return 0;
    *device = info.st_dev;
    *inode = info.st_ino;
    return 1;
}
/* The address family of a listening stream socket; -1 for any other descriptor. */
static inline int martlet_listening_family(int fd) {
    int value = 0;
    socklen_t length = sizeof value;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length) != 0 || value != SOCK_STREAM) return -1;
    length = sizeof value;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) != 0 || value == 0) return -1;
    length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &length) == 0 ? value : -1;
}
/* Makes an inherited descriptor non-blocking and close-on-exec. */
static inline int martlet_make_our_own(int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return -1;
    return fcntl(fd, F_SETFD, FD_CLOEXEC);
}
/* Whether a descriptor is open and not close-on-exec. */
static inline int martlet_is_inheritable(int fd) {
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC);
}
static inline int martlet_duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }
/* The ID of a user or group by name; -1 for an unknown name. */
static inline int64_t martlet_user_number(const char *name) {
    struct passwd entry, *found = NULL;
    char space[16384];
    return getpwnam_r(name, &entry, space, sizeof space, &found) == 0 && found ? (int64_t)entry.pw_uid : -1;
}
static inline int64_t martlet_group_number(const char *name) {
    struct group entry, *found = NULL;
    char space[16384];
    return getgrnam_r(name, &entry, space, sizeof space, &found) == 0 && found ? (int64_t)entry.gr_gid : -1;
}
extern char **environ;
/* The entry of the environment at an index; NULL after the last one. */
static inline char *martlet_environment_entry(size_t index) { return environ ? environ[index] : NULL; }
/* Standard input and output of this process lead nowhere. */
static inline void martlet_detach_output(void) {
    int null = open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 3; descriptor++) dup2(null, descriptor);
}
/* No core dump of this process. */
static inline int martlet_disable_core_dump(void) {
    struct rlimit none = {0, 0};
    return setrlimit(RLIMIT_CORE, &none);
}
/* All entries of the environment. */
static inline char **martlet_environment(void) { return environ; }
/* Starts a program that inherits the given descriptors, with the same numbers, and no others; returns an errno. */
static inline int martlet_spawn(pid_t *pid, const char *file, char *const arguments[], char *const environment[],
                                const int *descriptors, size_t count) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
#ifdef SYS_close_range
    // Libraries do not mark all their descriptors: set close-on-exec on all from 3 (CLOSE_RANGE_CLOEXEC).
    (void)syscall(SYS_close_range, 3U, ~0U, 4U);
#endif
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    // dup2 of a descriptor to itself clears close-on-exec (POSIX.1-2024).
    for (size_t index = 0; index < count && error == 0; index++) {
        error = posix_spawn_file_actions_adddup2(&actions, descriptors[index], descriptors[index]);
    }
    if (error == 0) error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        sigemptyset(&none);
        error = posix_spawnattr_setsigmask(&attributes, &none);
        if (error == 0) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        if (error == 0) error = posix_spawnp(pid, file, &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}
/* Moves bytes between a socket and a pipe without copying; never blocks on the pipe. */
ssize_t splice(int, int64_t *, int, int64_t *, size_t, unsigned);
static inline ssize_t martlet_splice(int from, int to, size_t count) {
    ssize_t moved;
    do moved = splice(from, NULL, to, NULL, count, 1U | 2U); /* SPLICE_F_MOVE, SPLICE_F_NONBLOCK */
    while (__builtin_expect(moved < 0, 0) && errno == EINTR);
    return moved;
}
/* A pipe with a capacity of `size` bytes, or less if the user exceeds the pipe limit (F_SETPIPE_SZ). */
static inline int martlet_body_pipe(int *read_end, int *write_end, int size) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    (void)fcntl(ends[1], 1031, size);
    *read_end = ends[0];
    *write_end = ends[1];
    return 0;
}
static const int martlet_more_follows = MSG_NOSIGNAL | MSG_MORE;
static inline int martlet_channel(int ends[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}
static inline int martlet_open_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY); }
static inline int martlet_open_read_nonblocking(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}
// Gives 0, 1 and 2 to descriptors that can neither be read nor written, where the process was started without them.
static inline void martlet_open_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        // The lowest number that is free is this one. Where the file cannot be opened, all stays as it is.
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) == -1) return;
    }
}
static inline int martlet_open_append(const char *path, mode_t mode) {
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode);
}
static inline ssize_t martlet_send_two(int fd, const void *first, size_t first_count, const void *second, size_t second_count) {
    if (second_count == 0) return martlet_send(fd, first, first_count, MSG_NOSIGNAL);
    struct iovec parts[2] = {{(void *)first, first_count}, {(void *)second, second_count}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent;
    do {
#ifdef SYS_sendmsg
        sent = martlet_system_call(SYS_sendmsg, fd, (long)&message, MSG_NOSIGNAL, 0, 0, 0);
#else
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
#endif
    } while (__builtin_expect(sent < 0, 0) && errno == EINTR);
    return sent;
}
/* Raises the descriptor limit to the hard limit, and returns it. */
static inline int64_t martlet_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
    }
    return limit.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)limit.rlim_cur;
}
/* A socket for datagrams to a Unix socket whose path begins with `/`, or with `@` for the abstract namespace; or -1. */
static inline int martlet_notify_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) return -1;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') address.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (connect(fd, (struct sockaddr *)&address, size) == 0) return fd;
    close(fd);
    return -1;
}
static inline int martlet_usable_processors(void) {
    unsigned long mask[64] = {0};
    int count = 0;
    if (syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) < 0) return 1;
    for (size_t word = 0; word < sizeof mask / sizeof *mask; word++) count += __builtin_popcountl(mask[word]);
    return count;
}
static inline int martlet_errno(void) { return errno; }
static inline int64_t martlet_monotonic_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline int64_t martlet_realtime_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline uint64_t martlet_load64(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

// On Linux, niceness is per thread, unlike in POSIX.
static inline void martlet_lower_thread_priority(int niceness) {
    if (niceness > 0) { (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), niceness); }
}

// A terminal with echo off. A signal that ends the process restores it, on any thread. To be used by one source file
// only: each object file has its own state.
struct martlet_terminal {
    int fd;
    struct termios before;
};

static inline struct martlet_terminal *martlet_terminal_state(void) {
    static struct martlet_terminal state;
    return &state;
}
static inline void martlet_terminal_interrupted(int number) {
    tcsetattr(martlet_terminal_state()->fd, TCSANOW, &martlet_terminal_state()->before);
    signal(number, SIG_DFL);
    raise(number);
}
static inline void martlet_terminal_on_signals(void (*handler)(int)) {
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t index = 0; index < sizeof ending / sizeof *ending; index++) signal(ending[index], handler);
}
static inline int martlet_terminal_hide(int fd) {
    struct martlet_terminal *state = martlet_terminal_state();
    if (tcgetattr(fd, &state->before) != 0) return -1;
    struct termios hidden = state->before;
    hidden.c_lflag = (hidden.c_lflag & ~(tcflag_t)ECHO) | ECHONL;
    state->fd = fd;
    martlet_terminal_on_signals(martlet_terminal_interrupted);
    return tcsetattr(fd, TCSAFLUSH, &hidden);
}
static inline void martlet_terminal_show(void) {
    tcsetattr(martlet_terminal_state()->fd, TCSANOW, &martlet_terminal_state()->before);
    martlet_terminal_on_signals(SIG_DFL);
}

// A file that lines are appended to, which others may read only if its owner lets them. A pipe without a reader, or a
// full one, does not block.
static inline int martlet_open_log(const char *path) {
    return open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
}
// Locks a file for this descriptor, or fails with EWOULDBLOCK; flock(2) has the name of a structure.
static inline int martlet_lock_file(int fd) { return flock(fd, LOCK_EX | LOCK_NB); }
// A datagram socket that is connected to a Unix socket, or -1.
static inline int martlet_datagram_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}
// The same for UDP; the name of the host is resolved, which may take as long as the resolver does.
static inline int martlet_datagram_udp(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        errno = EHOSTUNREACH;
        return -1;
    }
    int fd = -1;
    for (struct addrinfo *each = found; each && fd < 0; each = each->ai_next) {
        fd = socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, each->ai_addr, each->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0) errno = EHOSTUNREACH;
    return fd;
}

// The locks that a thread holds, for the checks of debug builds; used by one file only, because each module that
// includes this has variables of its own.
#define MARTLET_LOCKS 8
#define MARTLET_LOCK_FRAMES 24
struct martlet_locks {
    int count;
    uint8_t ranks[MARTLET_LOCKS];
    int frames[MARTLET_LOCKS];
    void *stacks[MARTLET_LOCKS][MARTLET_LOCK_FRAMES];
};
static inline struct martlet_locks *martlet_thread_locks(void) {
    static _Thread_local struct martlet_locks locks;
    return &locks;
}

// The rank of the lock that the thread took last, or 0.
static inline uint8_t martlet_lock_held(void) {
    struct martlet_locks *locks = martlet_thread_locks();
    return locks->count > 0 && locks->count <= MARTLET_LOCKS ? locks->ranks[locks->count - 1] : 0;
}
static inline void martlet_lock_push(uint8_t rank) {
    struct martlet_locks *locks = martlet_thread_locks();
    int index = locks->count++;
    if (index >= MARTLET_LOCKS) return;
    locks->ranks[index] = rank;
    locks->frames[index] = backtrace(locks->stacks[index], MARTLET_LOCK_FRAMES);
}
static inline void martlet_lock_pop(void) { martlet_thread_locks()->count--; }

// Writes the stacks of the calling thread and of the locks that it holds to standard error, and ends the process.
static inline void martlet_lock_violation(const char *text) {
    struct martlet_locks *locks = martlet_thread_locks();
    void *now[64];
    (void)!write(STDERR_FILENO, text, strlen(text));
    backtrace_symbols_fd(now, backtrace(now, 64), STDERR_FILENO);
    for (int index = locks->count - 1; index >= 0; index--) {
        static const char taken[] = "the lock was taken at:\n";
        if (index >= MARTLET_LOCKS) continue;
        (void)!write(STDERR_FILENO, taken, sizeof taken - 1);
        backtrace_symbols_fd(locks->stacks[index], locks->frames[index], STDERR_FILENO);
    }
    // The stacks have been written, and another handler would take minutes to do it again.
    signal(SIGABRT, SIG_DFL);
    abort();
}

#endif
