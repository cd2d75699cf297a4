// Runs a program, counts the system calls that can fail, and makes one of them fail, or move fewer bytes.
//
//     injector REPORT PORTS [THREAD CALL OBJECT NUMBER ERROR MILLISECONDS] -- PROGRAM ARGUMENT...
//
// A call is named by its thread without digits, its name, what it is about (`redis`, `accounts.db`, `eventfd`), and its
// number among those: threads interleave differently in each run, so a number over all calls would name another one.
// PORTS names what listens where: `6379=redis,8080=public`. ERROR is an errno, or 0: fewer bytes. All such calls fail
// for so many MILLISECONDS after the first; 0: it alone.
//
// The report has a line `pid N` at the start, `injected SECONDS WHAT` after a call that has failed, and the counts of all
// calls at the end.
// A call that moves fewer bytes than it could leaves a descriptor ready, of which epoll has no news: the kernel has them
// once it can move more, and so they come with the end of the call. The same is done for EAGAIN, which is what a call
// gets that comes too early.
//
// A filter (seccomp) stops a thread only before the calls of the list below: all others cost nothing. What fails is not
// carried out, as in a kernel that finds no memory; only close is, because Linux closes whatever it returns.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the registers of a stopped thread are those of x86-64"
#endif

// What a call is about: the descriptor or the path in one of its arguments, or nothing.
enum about { NOTHING, FIRST, THIRD, PATH, PATH_AT, FAMILY };
// How it moves fewer bytes: an argument is the length, or the arguments have pieces.
enum length { WHOLE, READ_2, WRITE_2, READ_1, WRITE_4, PIECES, MESSAGE };

struct call {
    int number;
    const char *name;
    enum about about;
    enum length length;
};

#define CALL(name, about, length) {SYS_##name, #name, about, length}
static const struct call calls[] = {
    CALL(read, FIRST, READ_2), CALL(pread64, FIRST, READ_2), CALL(recvfrom, FIRST, READ_2), CALL(readv, FIRST, WHOLE),
    CALL(recvmsg, FIRST, WHOLE), CALL(write, FIRST, WRITE_2), CALL(pwrite64, FIRST, WRITE_2),
    CALL(sendto, FIRST, WRITE_2), CALL(writev, FIRST, PIECES), CALL(sendmsg, FIRST, MESSAGE),
    CALL(splice, FIRST, WRITE_4), CALL(sendfile, FIRST, WHOLE), CALL(getrandom, NOTHING, READ_1),
    CALL(accept, FIRST, WHOLE), CALL(accept4, FIRST, WHOLE), CALL(bind, FIRST, WHOLE), CALL(listen, FIRST, WHOLE),
    CALL(connect, FIRST, WHOLE), CALL(socket, FAMILY, WHOLE), CALL(socketpair, FAMILY, WHOLE),
    CALL(setsockopt, FIRST, WHOLE), CALL(getsockopt, FIRST, WHOLE), CALL(getsockname, FIRST, WHOLE),
    CALL(getpeername, FIRST, WHOLE), CALL(shutdown, FIRST, WHOLE), CALL(close, FIRST, WHOLE),
    CALL(dup, FIRST, WHOLE), CALL(dup2, FIRST, WHOLE), CALL(dup3, FIRST, WHOLE), CALL(fcntl, FIRST, WHOLE),
    CALL(flock, FIRST, WHOLE), CALL(ioctl, FIRST, WHOLE), CALL(epoll_create1, NOTHING, WHOLE),
    CALL(epoll_ctl, THIRD, WHOLE), CALL(epoll_wait, NOTHING, WHOLE), CALL(epoll_pwait, NOTHING, WHOLE),
    CALL(poll, NOTHING, WHOLE), CALL(ppoll, NOTHING, WHOLE), CALL(eventfd2, NOTHING, WHOLE),
    CALL(signalfd4, NOTHING, WHOLE), CALL(timerfd_create, NOTHING, WHOLE), CALL(timerfd_settime, FIRST, WHOLE),
    CALL(pipe2, NOTHING, WHOLE), CALL(open, PATH, WHOLE), CALL(openat, PATH_AT, WHOLE), CALL(stat, PATH, WHOLE),
    CALL(lstat, PATH, WHOLE), CALL(fstat, FIRST, WHOLE), CALL(newfstatat, PATH_AT, WHOLE),
    CALL(statx, PATH_AT, WHOLE), CALL(access, PATH, WHOLE), CALL(readlink, PATH, WHOLE), CALL(unlink, PATH, WHOLE),
    CALL(unlinkat, PATH_AT, WHOLE), CALL(rename, PATH, WHOLE), CALL(mkdir, PATH, WHOLE), CALL(chmod, PATH, WHOLE),
    CALL(fchmod, FIRST, WHOLE), CALL(fchown, FIRST, WHOLE), CALL(chown, PATH, WHOLE), CALL(mknodat, PATH_AT, WHOLE),
    CALL(ftruncate, FIRST, WHOLE), CALL(fallocate, FIRST, WHOLE), CALL(lseek, FIRST, WHOLE),
    CALL(fsync, FIRST, WHOLE), CALL(fdatasync, FIRST, WHOLE), CALL(getdents64, FIRST, WHOLE),
    CALL(clone, NOTHING, WHOLE), CALL(clone3, NOTHING, WHOLE),
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

// The injector's own descriptors are above those of the program.
#define PROGRAM_DESCRIPTORS 512

static pid_t program;
static int program_handle;
static FILE *report;
static const char *ports;
static const char *target[3];
static int target_number, target_error = -1;
static double target_seconds, first_failure;
static uint64_t loader_begin, loader_end;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "injector: %s: %s\n", what, strerror(errno));
    exit(125);
}

// What a descriptor is.

static const char *port_name(int port) {
    static char name[32];
    for (const char *entry = ports; entry && *entry; entry = strchr(entry, ','), entry += entry != NULL) {
        int number = 0;
        if (sscanf(entry, "%d=%31[a-z_]", &number, name) == 2 && number == port) return name;
    }
    return NULL;
}

static int port_of(const struct sockaddr_storage *address) {
    if (address->ss_family == AF_INET) return ntohs(((const struct sockaddr_in *)address)->sin_port);
    return address->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)address)->sin6_port) : 0;
}

// One that is neither connected nor listens is called by its family: nothing else is known of it.
static void name_socket(int descriptor, char *label, size_t size) {
    snprintf(label, size, "socket");
    int copy = (int)syscall(SYS_pidfd_getfd, program_handle, descriptor, 0);
    if (copy < 0) return;
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_size = sizeof own, peer_size = sizeof peer, flag_size = sizeof(int);
    int listens = 0;
    getsockopt(copy, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_size);
    getsockname(copy, (struct sockaddr *)&own, &own_size);
    int connected = getpeername(copy, (struct sockaddr *)&peer, &peer_size) == 0;
    close(copy);
    const char *here = port_name(port_of(&own));
    if (own.ss_family == AF_UNIX) {
        snprintf(label, size, listens ? "unix_listener" : "unix");
    } else if (listens) {
        snprintf(label, size, "%s_listener", here ? here : "other");
    } else if (here) {
        snprintf(label, size, "%s_client", here);
    } else if (connected) {
        const char *there = port_name(port_of(&peer));
        snprintf(label, size, "%s", there ? there : "other");
    } else {
        snprintf(label, size, "inet");
    }
}

static void without_digits(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from < '0' || *from > '9') *to++ = *from == ' ' || *from == '\t' ? '_' : *from;
    }
    *to = 0;
    while (to > text && to[-1] == '-') *--to = 0;
    if (to == text) strcpy(text, "number");
}

static void name_path(const char *path, char *label, size_t size) {
    const char *last = strrchr(path, '/');
    snprintf(label, size, "%.63s", last && last[1] ? last + 1 : path);
    without_digits(label);
}

// By the files of the thread itself: at the end of the program the first thread loses its own before the others do.
static ssize_t read_link(pid_t thread, int descriptor, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, descriptor);
    return readlink(link, path, size);
}

static void name_descriptor(pid_t thread, int descriptor, char *label, size_t size) {
    char path[512], output[512];
    ssize_t length = read_link(thread, descriptor, path, sizeof path - 1);
    if (length < 0) {
        // The output is open to the end, so a thread without it has ended meanwhile.
        const char *state = read_link(thread, 1, output, sizeof output) < 0 ? "ended" : "closed";
        snprintf(label, size, "%s", descriptor < 0 ? "none" : state);
        return;
    }
    path[length] = 0;
    if (strncmp(path, "socket:", 7) == 0) return name_socket(descriptor, label, size);
    if (strncmp(path, "pipe:", 5) == 0) {
        snprintf(label, size, descriptor == 1 ? "stdout" : descriptor == 2 ? "stderr" : "pipe");
    } else if (strncmp(path, "anon_inode:[", 12) == 0) {
        path[length - 1] = 0;
        snprintf(label, size, "%.63s", path + 12);
    } else {
        name_path(path, label, size);
    }
}

static void name_remote_path(uint64_t address, char *label, size_t size) {
    char path[512] = {0};
    // In two parts: the page after the path may not exist.
    size_t first = 4096 - address % 4096;
    if (first > sizeof path - 1) first = sizeof path - 1;
    struct iovec here = {path, first}, there = {(void *)(uintptr_t)address, first};
    if (process_vm_readv(program, &here, 1, &there, 1, 0) > 0 && !memchr(path, 0, first)) {
        here = (struct iovec){path + first, sizeof path - 1 - first};
        there = (struct iovec){(void *)(uintptr_t)(address + first), here.iov_len};
        process_vm_readv(program, &here, 1, &there, 1, 0);
    }
    name_path(path, label, size);
}

static void name_object(pid_t thread, const struct call *call, const struct user_regs_struct *registers, char *label,
                        size_t size) {
    switch (call->about) {
        case NOTHING: snprintf(label, size, "-"); break;
        case FIRST: name_descriptor(thread, (int)registers->rdi, label, size); break;
        case THIRD: name_descriptor(thread, (int)registers->rdx, label, size); break;
        case PATH: name_remote_path(registers->rdi, label, size); break;
        case PATH_AT:
            name_remote_path(registers->rsi, label, size);
            // fstat is newfstatat without a path.
            if (!*label || !strcmp(label, "number")) name_descriptor(thread, (int)registers->rdi, label, size);
            break;
        case FAMILY: snprintf(label, size, (int)registers->rdi == AF_UNIX ? "unix" : "inet"); break;
    }
}

// How often each call was made.

struct tally {
    char thread[24], object[64];
    const struct call *call;
    int count;
};
static struct tally tallies[4096];
static size_t tally_count;

static struct tally *tally_of(const char *thread, const struct call *call, const char *object) {
    for (size_t index = 0; index < tally_count; index++) {
        struct tally *one = &tallies[index];
        if (one->call == call && !strcmp(one->object, object) && !strcmp(one->thread, thread)) return one;
    }
    if (tally_count == COUNT(tallies)) {
        errno = ENOSPC;
        fail("too many different calls");
    }
    struct tally *one = &tallies[tally_count++];
    snprintf(one->thread, sizeof one->thread, "%s", thread);
    snprintf(one->object, sizeof one->object, "%s", object);
    one->call = call;
    return one;
}

static void name_thread(pid_t thread, char *name, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, name, size - 1);
    if (file >= 0) close(file);
    name[length > 0 ? length - 1 : 0] = 0;
    without_digits(name);
}

// What is done to the call.

// What has to be put back when the call has returned: the kernel keeps these registers.
static struct {
    pid_t thread;
    struct user_regs_struct registers;
    int error;
    int keeps_result;
} pending;

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void note_injection(const char *what) {
    fprintf(report, "injected %.6f %s\n", seconds_now(), what);
    fflush(report);
}

// Whether this call is one that is to fail.
static int is_target(const char *thread, const struct call *call, const char *object, int number) {
    if (target_error < 0 || number < target_number || strcmp(target[1], call->name) != 0) return 0;
    if (strcmp(target[0], thread) != 0 || strcmp(target[2], object) != 0) return 0;
    if (number == target_number) {
        first_failure = seconds_now();
        return 1;
    }
    return seconds_now() < first_failure + target_seconds;
}

static uint64_t fewer(uint64_t length, int reads) {
    if (length < 2) return length;
    // A read has to be short of what has arrived, which may be much less than there is space for.
    return reads ? 1 : length / 2;
}

// Makes a copy of the pieces, without the second half of their bytes, below the red zone of the thread's stack.
static uint64_t half_of_pieces(const struct user_regs_struct *registers, uint64_t pieces, size_t count, size_t *left) {
    struct iovec copy[64];
    if (count == 0 || count > COUNT(copy)) return 0;
    struct iovec here = {copy, count * sizeof *copy}, there = {(void *)(uintptr_t)pieces, count * sizeof *copy};
    if (process_vm_readv(program, &here, 1, &there, 1, 0) < 0) return 0;
    size_t total = 0;
    for (size_t index = 0; index < count; index++) total += copy[index].iov_len;
    size_t rest = total / 2;
    for (*left = 0; *left < count && rest > 0; ++*left) {
        if (copy[*left].iov_len > rest) copy[*left].iov_len = rest;
        rest -= copy[*left].iov_len;
    }
    if (*left == 0) return 0;
    there.iov_base = (void *)(uintptr_t)((registers->rsp - 4096) & ~15ULL);
    return process_vm_writev(program, &here, 1, &there, 1, 0) < 0 ? 0 : (uint64_t)(uintptr_t)there.iov_base;
}

static int shorten(const struct call *call, struct user_regs_struct *registers) {
    unsigned long long *length = NULL;
    int reads = call->length == READ_1 || call->length == READ_2;
    switch (call->length) {
        case WHOLE: return 0;
        case READ_1: length = &registers->rsi; break;
        case READ_2: case WRITE_2: length = &registers->rdx; break;
        case WRITE_4: length = &registers->r8; break;
        case PIECES: {
            size_t left = 0;
            uint64_t copy = half_of_pieces(registers, registers->rsi, registers->rdx, &left);
            if (!copy) return 0;
            registers->rsi = copy;
            registers->rdx = left;
            return 1;
        }
        case MESSAGE: {
            struct msghdr message;
            struct iovec here = {&message, sizeof message}, there = {(void *)(uintptr_t)registers->rsi, sizeof message};
            if (process_vm_readv(program, &here, 1, &there, 1, 0) < 0) return 0;
            size_t left = 0;
            uint64_t copy = half_of_pieces(registers, (uint64_t)(uintptr_t)message.msg_iov, message.msg_iovlen, &left);
            if (!copy) return 0;
            message.msg_iov = (void *)(uintptr_t)copy;
            message.msg_iovlen = left;
            there.iov_base = (void *)(uintptr_t)(copy - 256);
            if (process_vm_writev(program, &here, 1, &there, 1, 0) < 0) return 0;
            registers->rsi = copy - 256;
            return 1;
        }
    }
    if (fewer(*length, reads) == *length) return 0;
    *length = fewer(*length, reads);
    return 1;
}

// The program's descriptor, with a number that none of its own has.
static int copy_high(int descriptor) {
    int copy = (int)syscall(SYS_pidfd_getfd, program_handle, descriptor, 0);
    if (copy < 0) return -1;
    int high = fcntl(copy, F_DUPFD_CLOEXEC, PROGRAM_DESCRIPTORS);
    close(copy);
    return high;
}

// What an epoll of the program has been asked about a descriptor.
static int find_entry(int epoll, int descriptor, struct epoll_event *event) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", program, epoll);
    FILE *entries = fopen(path, "re");
    int found = 0;
    while (entries && !found && fgets(line, sizeof line, entries)) {
        int number;
        unsigned events;
        unsigned long long data;
        if (sscanf(line, "tfd: %d events: %x data: %llx", &number, &events, &data) != 3) continue;
        if (number != descriptor) continue;
        *event = (struct epoll_event){.events = events, .data = {.u64 = data}};
        found = 1;
    }
    if (entries) fclose(entries);
    return found;
}

// Has each epoll of the program report a descriptor again, if it is ready. The kernel knows an entry by its file and its
// number, so the copy needs the same number here.
static void report_again(int descriptor) {
    for (int number = 0; number < PROGRAM_DESCRIPTORS && descriptor > 2; number++) {
        struct epoll_event event;
        if (!find_entry(number, descriptor, &event)) continue;
        int epoll = copy_high(number), copy = copy_high(descriptor);
        if (dup2(copy, descriptor) < 0 || epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event) != 0) fail("epoll_ctl");
        close(descriptor);
        close(copy);
        close(epoll);
    }
}

// :returns: how the thread goes on: to the end of the call where something is to be put back.
static int inject(pid_t thread, const struct call *call, struct user_regs_struct *registers) {
    struct user_regs_struct original = *registers;
    if (target_error == 0) {
        if (!shorten(call, registers)) {
            note_injection("nothing");
            return PTRACE_CONT;
        }
        pending.keeps_result = 1;
    } else if (call->number == SYS_close) {
        pending.keeps_result = 0;
    } else {
        registers->orig_rax = (unsigned long long)-1;
        registers->rax = (unsigned long long)-target_error;
        ptrace(PTRACE_SETREGS, thread, 0, registers);
        note_injection("error");
        if (target_error == EAGAIN && call->about == FIRST) report_again((int)registers->rdi);
        return PTRACE_CONT;
    }
    ptrace(PTRACE_SETREGS, thread, 0, registers);
    pending.thread = thread;
    pending.registers = original;
    note_injection(target_error ? "error" : "short");
    return PTRACE_SYSCALL;
}

static void put_back(pid_t thread) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers) != 0) return;
    registers.rdi = pending.registers.rdi;
    registers.rsi = pending.registers.rsi;
    registers.rdx = pending.registers.rdx;
    registers.r8 = pending.registers.r8;
    if (!pending.keeps_result) registers.rax = (unsigned long long)-target_error;
    ptrace(PTRACE_SETREGS, thread, 0, &registers);
    if (pending.keeps_result) report_again((int)pending.registers.rdi);
    pending.thread = 0;
}

// Linux lets no release of a lock fail: it would be held for ever.
static int releases_lock(const struct call *call, const struct user_regs_struct *registers) {
    if (call->number != SYS_fcntl || (registers->rsi != F_SETLK && registers->rsi != F_OFD_SETLK)) return 0;
    struct flock lock = {.l_type = F_UNLCK};
    struct iovec here = {&lock, sizeof lock}, there = {(void *)(uintptr_t)registers->rdx, sizeof lock};
    process_vm_readv(program, &here, 1, &there, 1, 0);
    return lock.l_type == F_UNLCK;
}

static int meet_call(pid_t thread) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers) != 0) return PTRACE_CONT;
    // What the loader of libraries does is not the program's.
    if (registers.rip >= loader_begin && registers.rip < loader_end) return PTRACE_CONT;
    const struct call *call = NULL;
    for (size_t index = 0; index < COUNT(calls) && !call; index++) {
        if (calls[index].number == (int)registers.orig_rax) call = &calls[index];
    }
    if (!call || releases_lock(call, &registers)) return PTRACE_CONT;
    char name[24], object[64];
    name_thread(thread, name, sizeof name);
    name_object(thread, call, &registers, object, sizeof object);
    struct tally *tally = tally_of(name, call, object);
    tally->count++;
    return is_target(name, call, object, tally->count) ? inject(thread, call, &registers) : PTRACE_CONT;
}

// The program.

static void install_filter(void) {
    struct sock_filter code[2 * COUNT(calls) + 16];
    size_t count = 0;
    code[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    // At the start thousands of descriptors are checked with F_GETFD, which has no error but EBADF.
    code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4);
    code[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]));
    code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_GETFD, 0, 1);
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    for (size_t index = 0; index < COUNT(calls); index++) {
        code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[index].number, 0, 1);
        code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {(unsigned short)count, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) fail("seccomp");
}

static void find_loader(void) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", program);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof line, maps)) {
        uint64_t begin, end;
        if (!strstr(line, "/ld-linux") || sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
        if (!loader_begin) loader_begin = begin;
        loader_end = end;
    }
    if (maps) fclose(maps);
}

static void start(char **arguments) {
    program = fork();
    if (program < 0) fail("fork");
    if (program == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        install_filter();
        execvp(arguments[0], arguments);
        fail(arguments[0]);
    }
    int status;
    if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status)) fail("the program does not start");
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK
        | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, program, 0, options) != 0) fail("ptrace");
    int handle = (int)syscall(SYS_pidfd_open, program, 0);
    program_handle = fcntl(handle, F_DUPFD_CLOEXEC, PROGRAM_DESCRIPTORS);
    if (program_handle < 0) fail("pidfd_open");
    close(handle);
    fprintf(report, "pid %d\n", program);
    fflush(report);
    ptrace(PTRACE_CONT, program, 0, 0);
}

// Follows all threads to the end. :returns: the program's status.
static int follow(void) {
    int result = 0;
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == EINTR) continue;
        if (thread < 0) return result;
        if (!WIFSTOPPED(status)) {
            if (thread == program) result = status;
            continue;
        }
        int next = PTRACE_CONT, signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP) {
            next = meet_call(thread);
            signal = 0;
        } else if (event != 0) {
            if (event == PTRACE_EVENT_EXEC) find_loader();
            signal = 0;
        } else if (signal == (SIGTRAP | 0x80)) {
            // After a stop of seccomp the next one is at the end of the call.
            if (thread == pending.thread) put_back(thread);
            signal = 0;
        } else if (signal == SIGSTOP) {
            // Each new thread begins with one.
            signal = 0;
        }
        ptrace(next, thread, 0, (long)signal);
    }
}

int main(int count, char **arguments) {
    int separator = 3;
    while (separator < count && strcmp(arguments[separator], "--") != 0) separator++;
    if (separator + 1 >= count || (separator != 3 && separator != 9)) {
        fprintf(stderr, "usage: injector REPORT PORTS [THREAD CALL OBJECT NUMBER ERROR MILLISECONDS] -- PROGRAM ...\n");
        return 64;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    int file = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    report = fdopen(fcntl(file, F_DUPFD_CLOEXEC, PROGRAM_DESCRIPTORS), "w");
    if (!report) fail(arguments[1]);
    close(file);
    ports = arguments[2];
    if (separator == 9) {
        for (int index = 0; index < 3; index++) target[index] = arguments[3 + index];
        target_number = atoi(arguments[6]);
        target_error = atoi(arguments[7]);
        target_seconds = atoi(arguments[8]) / 1000.0;
    }
    start(arguments + separator + 1);
    int status = follow();
    for (size_t index = 0; index < tally_count; index++) {
        struct tally *one = &tallies[index];
        fprintf(report, "call\t%s\t%s\t%s\t%d\n", one->thread, one->call->name, one->object, one->count);
    }
    fclose(report);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
