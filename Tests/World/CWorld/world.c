#define _GNU_SOURCE
#include "CWorld.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <malloc.h>
#include <openssl/rand.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <asm/prctl.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
enum { ALLOW = 0, BLOCK = 1, MOST_THREADS = 4096 };

// What Linux reads before each system call of the thread that runs all others.
static volatile char selector;
static __thread int number = -1;
static struct world_kernel kernel;

struct thread {
    // Where its stack pointer was when it was left.
    void *stack;
    // Where its variables are.
    void *variables;
    _Atomic uint32_t is_ready;
    pthread_t identity;
    void *(*body)(void *);
    void *context;
};
static struct thread threads[MOST_THREADS];

void world_enter(void) { selector = BLOCK; }
void world_leave(void) { selector = ALLOW; }

long world_system_call(long call, long a, long b, long c, long d, long e, long f) {
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(call), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

// Leaves a stack for another one: what a function has to preserve stays on the first.
void world_swap(void **left, void *entered);
__asm__(".text\n"
        ".global world_swap\n"
        "world_swap:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n");

static void use_variables(void *variables) {
    static int can_write_base = -1;
    if (can_write_base < 0) can_write_base = (getauxval(AT_HWCAP2) & 2) != 0;
    if (can_write_base) {
        __asm__ volatile("wrfsbase %0" : : "r"(variables) : "memory");
    } else {
        world_system_call(SYS_arch_prctl, ARCH_SET_FS, (long)variables, 0, 0, 0, 0);
    }
}

void world_turn(int thread) {
    struct thread *own = &threads[number], *next = &threads[thread];
    use_variables(next->variables);
    world_swap(&own->stack, next->stack);
}

// The only system call that the handler itself makes while calls are handed over: its return.
__asm__(".section .text.world_return, \"ax\"\n"
        ".balign 4096\n"
        ".global world_return_begin, world_return_end\n"
        "world_return_begin:\n"
        "  mov $15, %eax\n"  // rt_sigreturn
        "  syscall\n"
        "  ud2\n"  // Linux compares the address behind the call.
        "world_return_end:\n"
        ".balign 4096\n"
        ".text\n");
extern char world_return_begin[], world_return_end[];

static void called(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    selector = ALLOW;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const long arguments[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                               registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
    int reason = errno;
    registers[REG_RAX] = kernel.call(number, registers[REG_RAX], arguments);
    errno = reason;
    selector = BLOCK;
}

// As Linux wants it, without the C library, whose handlers return by a system call of its own.
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

static int arm(void) {
    return prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, world_return_begin, world_return_end - world_return_begin, &selector);
}

static int random_bytes(unsigned char *bytes, int count) {
    kernel.random(bytes, (size_t)count);
    return 1;
}
static int random_status(void) { return 1; }

int world_open(const struct world_kernel *given) {
    // The allocator asks the system for nothing but memory: it holds its lock, and the kernel here allocates, too.
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
    kernel = *given;
    number = 0;
    threads[0].variables = (void *)pthread_self();
    struct kernel_action action = {called, SA_SIGINFO | SA_NODEFER | 0x04000000 /* SA_RESTORER */, world_return_begin, 0};
    if (world_system_call(SYS_rt_sigaction, SIGSYS, (long)&action, 0, 8, 0, 0) != 0) return -1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    // OpenSSL's generator stirs in the processor's counters, so no seed repeats it.
    static RAND_METHOD method = {.bytes = random_bytes, .pseudorand = random_bytes, .status = random_status};
    RAND_set_rand_method(&method);
#pragma GCC diagnostic pop
    return arm();
}

// Not the C library's, which takes the stacks of all other threads for free in the copy.
int world_fork(void) {
    int child = (int)world_system_call(SYS_fork, 0, 0, 0, 0, 0, 0);
    if (child == 0 && arm() != 0) _exit(71);
    return child;
}

int world_copies(int requests, int replies) {
    for (;;) {
        int32_t wanted;
        if (world_system_call(SYS_read, requests, (long)&wanted, sizeof wanted, 0, 0, 0) != sizeof wanted) _exit(0);
        int32_t copy = (int32_t)world_system_call(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0, 0);
        if (copy == 0) {
            if (arm() != 0) _exit(71);
            world_system_call(SYS_close, requests, 0, 0, 0, 0, 0);
            world_system_call(SYS_close, replies, 0, 0, 0, 0, 0);
            return wanted;
        }
        if (world_system_call(SYS_write, replies, (long)&copy, sizeof copy, 0, 0, 0) != sizeof copy) _exit(0);
    }
}

int world_pin(char **arguments) {
    int persona = personality(0xffffffff);
    if (persona >= 0 && !(persona & ADDR_NO_RANDOMIZE) && personality(persona | ADDR_NO_RANDOMIZE) >= 0) {
        char *environment[] = {"SWIFT_DETERMINISTIC_HASHING=1", "SWIFT_BACKTRACE=enable=no", "PATH=/usr/bin:/bin", NULL,
                               NULL};
        char profile[PATH_MAX];
        const char *counts = getenv("LLVM_PROFILE_FILE");
        if (counts && snprintf(profile, sizeof profile, "LLVM_PROFILE_FILE=%s", counts) < PATH_MAX) {
            environment[3] = profile;
        }
        execve("/proc/self/exe", arguments, environment);
    }
    return persona & ADDR_NO_RANDOMIZE ? 0 : -1;
}

// Where a build counts which lines are executed.
__attribute__((weak)) int __llvm_profile_write_file(void);

void world_write_profile(void) {
    if (__llvm_profile_write_file) __llvm_profile_write_file();
}

void world_use_processor(int processor) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor % sysconf(_SC_NPROCESSORS_ONLN), &only);
    sched_setaffinity(0, sizeof only, &only);
}

static long call(long which, long a, long b, long c, long d, long e, long f);

// MARK: What the C library does without a system call, or with some that a signal handler cannot make

static void run_thread(void) {
    struct thread *own = &threads[number];
    kernel.run(number, own->body, own->context);
}

// A thread of the system has a stack and variables, which is all that is used of it: the first thread of the process
// runs its body on them. It waits until the process ends.
static void *begin(void *context) {
    struct thread *own = context;
    number = (int)(own - threads);
    own->variables = (void *)pthread_self();
    void **top = (void **)(((uintptr_t)__builtin_frame_address(0) - 16384) & ~(uintptr_t)15);
    // The end of all stacks, the function to begin with, and the six registers of world_swap.
    top[-1] = NULL;
    top[-2] = (void *)run_thread;
    memset(&top[-8], 0, 6 * sizeof *top);
    own->stack = &top[-8];
    atomic_store(&own->is_ready, 1);
    world_system_call(SYS_futex, (long)&own->is_ready, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    for (;;) world_system_call(SYS_futex, (long)&own->is_ready, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
}

int pthread_create(pthread_t *identity, const pthread_attr_t *attributes, void *(*body)(void *), void *context) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (number < 0 || selector == ALLOW) {
        if (!real) real = dlsym(RTLD_NEXT, "pthread_create");
        return real(identity, attributes, body, context);
    }
    selector = ALLOW;
    if (!real) real = dlsym(RTLD_NEXT, "pthread_create");
    int child = kernel.start(number), error = child < 0 ? -child : 0;
    if (error == 0) {
        threads[child].body = body;
        threads[child].context = context;
        error = real(&threads[child].identity, attributes, begin, &threads[child]);
        *identity = threads[child].identity;
        while (error == 0 && !atomic_load(&threads[child].is_ready)) {
            world_system_call(SYS_futex, (long)&threads[child].is_ready, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
        }
    }
    selector = BLOCK;
    return error;
}

static int thread_of(pthread_t identity) {
    for (int index = MOST_THREADS - 1; index > 0; index--) {
        if (threads[index].identity == identity) return index;
    }
    return -1;
}

// A thread that has ended stays until the process does, so that its identity is not given to another.
int pthread_join(pthread_t identity, void **result) {
    static int (*real)(pthread_t, void **);
    if (number < 0 || selector == ALLOW) {
        if (!real) real = dlsym(RTLD_NEXT, "pthread_join");
        return real(identity, result);
    }
    selector = ALLOW;
    kernel.join(number, thread_of(identity));
    if (result) *result = NULL;
    selector = BLOCK;
    return 0;
}

int pthread_detach(pthread_t identity) {
    (void)identity;
    return 0;
}

static int64_t world_clock(int clock) {
    char before = selector;
    selector = ALLOW;
    int64_t time = kernel.clock(number, clock);
    selector = before;
    return time;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (number < 0 || selector == ALLOW) return (int)call(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
    int64_t nanoseconds = world_clock(clock);
    time->tv_sec = nanoseconds / 1000000000;
    time->tv_nsec = nanoseconds % 1000000000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *result, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    result->tv_sec = now.tv_sec;
    result->tv_usec = now.tv_nsec / 1000;
    return 0;
}

// MARK: The C library's calls that are made most often: they reach the kernel without a signal, which costs most of a call

static long call(long which, long a, long b, long c, long d, long e, long f) {
    long result;
    if (number < 0 || selector == ALLOW) {
        result = world_system_call(which, a, b, c, d, e, f);
    } else {
        const long arguments[6] = {a, b, c, d, e, f};
        selector = ALLOW;
        result = kernel.call(number, which, arguments);
        selector = BLOCK;
    }
    if ((unsigned long)result <= -4096UL) return result;
    errno = (int)-result;
    return -1;
}

long syscall(long which, ...) {
    va_list rest;
    va_start(rest, which);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    return call(which, a, b, c, d, e, f);
}

int close(int file) { return (int)call(SYS_close, file, 0, 0, 0, 0, 0); }
ssize_t read(int file, void *bytes, size_t count) { return call(SYS_read, file, (long)bytes, (long)count, 0, 0, 0); }
ssize_t write(int file, const void *bytes, size_t count) {
    return call(SYS_write, file, (long)bytes, (long)count, 0, 0, 0);
}
ssize_t readv(int file, const struct iovec *parts, int count) {
    return call(SYS_readv, file, (long)parts, count, 0, 0, 0);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    return call(SYS_writev, file, (long)parts, count, 0, 0, 0);
}
ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
    return call(SYS_pread64, file, (long)bytes, (long)count, offset, 0, 0);
}
ssize_t pread64(int, void *, size_t, off64_t) __attribute__((alias("pread")));
ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return call(SYS_pwrite64, file, (long)bytes, (long)count, offset, 0, 0);
}
ssize_t pwrite64(int, const void *, size_t, off64_t) __attribute__((alias("pwrite")));
ssize_t recvfrom(int socket, void *bytes, size_t count, int flags, struct sockaddr *from, socklen_t *length) {
    return call(SYS_recvfrom, socket, (long)bytes, (long)count, flags, (long)from, (long)length);
}
ssize_t recv(int socket, void *bytes, size_t count, int flags) {
    return call(SYS_recvfrom, socket, (long)bytes, (long)count, flags, 0, 0);
}
ssize_t sendto(int socket, const void *bytes, size_t count, int flags, const struct sockaddr *to, socklen_t length) {
    return call(SYS_sendto, socket, (long)bytes, (long)count, flags, (long)to, length);
}
ssize_t send(int socket, const void *bytes, size_t count, int flags) {
    return call(SYS_sendto, socket, (long)bytes, (long)count, flags, 0, 0);
}
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    return call(SYS_sendmsg, socket, (long)message, flags, 0, 0, 0);
}
ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    return call(SYS_recvmsg, socket, (long)message, flags, 0, 0, 0);
}
ssize_t splice(int from, off64_t *start, int to, off64_t *end, size_t count, unsigned flags) {
    return call(SYS_splice, from, (long)start, to, (long)end, (long)count, flags);
}
int socket(int family, int type, int protocol) { return (int)call(SYS_socket, family, type, protocol, 0, 0, 0); }
int accept4(int listener, struct sockaddr *from, socklen_t *length, int flags) {
    return (int)call(SYS_accept4, listener, (long)from, (long)length, flags, 0, 0);
}
int connect(int socket, const struct sockaddr *to, socklen_t length) {
    return (int)call(SYS_connect, socket, (long)to, length, 0, 0, 0);
}
int setsockopt(int socket, int level, int option, const void *value, socklen_t length) {
    return (int)call(SYS_setsockopt, socket, level, option, (long)value, length, 0);
}
int getsockopt(int socket, int level, int option, void *value, socklen_t *length) {
    return (int)call(SYS_getsockopt, socket, level, option, (long)value, (long)length, 0);
}
int poll(struct pollfd *files, nfds_t count, int time) {
    return (int)call(SYS_poll, (long)files, (long)count, time, 0, 0, 0);
}
int epoll_ctl(int poller, int operation, int file, struct epoll_event *event) {
    return (int)call(SYS_epoll_ctl, poller, operation, file, (long)event, 0, 0);
}
int epoll_wait(int poller, struct epoll_event *events, int most, int time) {
    return (int)call(SYS_epoll_wait, poller, (long)events, most, time, 0, 0);
}
int eventfd_read(int file, eventfd_t *value) { return read(file, value, sizeof *value) == sizeof *value ? 0 : -1; }
int eventfd_write(int file, eventfd_t value) { return write(file, &value, sizeof value) == sizeof value ? 0 : -1; }

// Semaphores: a value, and the number of threads that wait. One thread runs at a time, so nothing comes in between.
struct semaphore {
    uint32_t value;
    uint32_t waiters;
};

int sem_post(sem_t *given) {
    struct semaphore *semaphore = (struct semaphore *)given;
    semaphore->value++;
    if (semaphore->waiters > 0) call(SYS_futex, (long)semaphore, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    return 0;
}

static int wait_for(sem_t *given, long operation, const struct timespec *end) {
    struct semaphore *semaphore = (struct semaphore *)given;
    while (semaphore->value == 0) {
        semaphore->waiters++;
        long result = call(SYS_futex, (long)semaphore, operation, 0, (long)end, 0, FUTEX_BITSET_MATCH_ANY);
        semaphore->waiters--;
        if (result < 0 && errno != EAGAIN) return -1;
    }
    semaphore->value--;
    return 0;
}

int sem_wait(sem_t *semaphore) { return wait_for(semaphore, FUTEX_WAIT_BITSET_PRIVATE, NULL); }

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *end) {
    int real = clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
    return wait_for(semaphore, FUTEX_WAIT_BITSET_PRIVATE | real, end);
}
