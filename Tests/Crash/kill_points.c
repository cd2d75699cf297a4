// Kills the process it is preloaded into before the n-th call that makes a change durable or that others see: a commit
// of the account store, and everything sent to a socket.
//
// The file in MARTLET_KILL_POINTS is shared with the test: the number of the call before which to kill (0: none), the
// number of calls so far, and the first letter of each call's name. See KillPoints.swift.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALLS 4000

struct kill_points {
    _Atomic int target;
    _Atomic int count;
    char calls[CALLS];
};

static struct kill_points *points;

__attribute__((constructor)) static void open_points(void) {
    const char *path = getenv("MARTLET_KILL_POINTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof *points, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED) points = memory;
}

static void pass(char call) {
    int target = points ? atomic_load(&points->target) : 0;
    if (target == 0) return;
    int number = atomic_fetch_add(&points->count, 1) + 1;
    if (number < CALLS) points->calls[number - 1] = call;
    if (number != target) return;
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static void pass_socket(int file, char call) {
    struct stat status;
    if (points && fstat(file, &status) == 0 && S_ISSOCK(status.st_mode)) pass(call);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int file) {
    pass('f');
    return NEXT(fsync)(file);
}

int fdatasync(int file) {
    pass('f');
    return NEXT(fdatasync)(file);
}

ssize_t write(int file, const void *bytes, size_t count) {
    pass_socket(file, 'w');
    return NEXT(write)(file, bytes, count);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    pass_socket(file, 'w');
    return NEXT(writev)(file, parts, count);
}

ssize_t send(int file, const void *bytes, size_t count, int flags) {
    pass('s');
    return NEXT(send)(file, bytes, count, flags);
}

ssize_t sendto(int file, const void *bytes, size_t count, int flags, const struct sockaddr *peer, socklen_t length) {
    pass('s');
    return NEXT(sendto)(file, bytes, count, flags, peer, length);
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    pass('s');
    return NEXT(sendmsg)(file, message, flags);
}
