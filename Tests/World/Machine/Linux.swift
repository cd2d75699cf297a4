import CWorld

/// System calls to Linux itself, and their numbers (x86-64).
enum Linux {
    static func call(
        _ number: Int, _ a: Int = 0, _ b: Int = 0, _ c: Int = 0, _ d: Int = 0, _ e: Int = 0, _ f: Int = 0
    ) -> Int {
        world_system_call(number, a, b, c, d, e, f)
    }

    static let read = 0, write = 1, open = 2, close = 3, stat = 4, fstat = 5, lstat = 6, poll = 7, lseek = 8, mmap = 9
    static let mprotect = 10, munmap = 11, brk = 12, sigaction = 13, sigprocmask = 14, ioctl = 16, pread = 17,
        pwrite = 18
    static let readv = 19, writev = 20, access = 21, yield = 24, mremap = 25, madvise = 28, nanosleep = 35, getpid = 39
    static let socket = 41, connect = 42, sendto = 44, recvfrom = 45, sendmsg = 46, recvmsg = 47, shutdown = 48
    static let bind = 49, listen = 50, getsockname = 51, getpeername = 52, socketpair = 53, setsockopt = 54
    static let getsockopt = 55, exit = 60, uname = 63, fcntl = 72, fsync = 74, fdatasync = 75, ftruncate = 77,
        getcwd = 79
    static let rename = 82, mkdir = 83, unlink = 87, readlink = 89, fchmod = 91, fchown = 93, getrlimit = 97,
        getrusage = 98
    static let sysinfo = 99, getuid = 102, geteuid = 107, sigaltstack = 131, setpriority = 141, prctl = 157,
        gettid = 186
    static let flock = 73, futex = 202, setaffinity = 203, getaffinity = 204, getdents = 217, restart = 219,
        epollWait = 232
    static let epollControl = 233, exitGroup = 231, tgkill = 234, openat = 257, newfstatat = 262, unlinkat = 263
    static let renameat = 264, accept4 = 288, eventfd = 290, pipe2 = 293, prlimit = 302, getrandom = 318, timerfd = 283
    static let timerfdSet = 286, timerfdGet = 287, epollCreate = 291, splice = 275, clockNanosleep = 230,
        clockGettime = 228
    static let sigtimedwait = 128, accessat = 269, robustList = 273, rseq = 334, ppoll = 271, epollPwait = 281
    static let membarrier = 324, statx = 332, gettimeofday = 96, getppid = 110, mknodat = 259, getresuid = 118, dup = 32

    /// Those of memory, signals and identity, which Linux serves.
    static let passed: Set<Int> = [
        mmap, mprotect, munmap, brk, mremap, madvise, sigaction, sigaltstack, robustList, rseq, membarrier,
        setpriority,
        getrlimit, prlimit, getuid, geteuid, getresuid, restart, getcwd, uname,
    ]
    /// Those of files by path, which exist below the folder of the world.
    static let paths: Set<Int> = [open, stat, lstat, access, unlink, mkdir, readlink]
    static let pathsAt: Set<Int> = [openat, newfstatat, unlinkat, accessat, statx, mknodat]
}
