import CLinux

extension Machine {
    var threadID: Int { 1000 + runningNumber }

    func fileControl(_ a: UnsafePointer<Int>) -> Int {
        guard let file = descriptors[a[0]] else {
            // The start of a process looks at every number.
            return a[0] < 3 ? 0 : -Int(EBADF)
        }
        switch Int32(truncatingIfNeeded: a[1]) {
        case F_GETFD: return Int(FD_CLOEXEC)
        case F_SETFD: return 0
        case F_GETFL: return Int(O_RDWR) | (file.isNonBlocking ? Int(O_NONBLOCK) : 0)
        case F_SETFL:
            file.isNonBlocking = a[2] & Int(O_NONBLOCK) != 0
            return 0
        case F_DUPFD, Int32(1030): return descriptors.add(file, for: process)
        case 1031:
            (file as? PipeEnd)?.setCapacity(a[2])
            return a[2]
        case F_GETLK, F_SETLK, F_SETLKW, 36, 37, 38:
            guard let real = file as? RealFile else { return -Int(EINVAL) }
            return Linux.call(Linux.fcntl, real.number, a[1], a[2])
        default: return -Int(EINVAL)
        }
    }

    func deviceControl(_ a: UnsafePointer<Int>) -> Int {
        guard let file = descriptors[a[0]] else { return -Int(EBADF) }
        guard let result = UnsafeMutablePointer<Int32>(bitPattern: a[2]) else { return -Int(ENOTTY) }
        switch a[1] {
        case 0x541b:  // FIONREAD
            result.pointee = Int32((file as? Stream)?.available ?? (file as? PipeEnd)?.available ?? 0)
            return 0
        case 0x5411:  // TIOCOUTQ
            result.pointee = Int32((file as? Stream)?.unsent ?? 0)
            return 0
        case 0x5421:  // FIONBIO
            file.isNonBlocking = result.pointee != 0
            return 0
        default: return -Int(ENOTTY)
        }
    }

    /// Files by path and their descriptors: those below `/world` are in a folder of this world, those of the system do
    /// not exist where they would show what machine this is.
    func fileCall(_ number: Int, _ a: UnsafePointer<Int>) -> Int? {
        if Linux.pathsAt.contains(number) || Linux.paths.contains(number) {
            let index = Linux.pathsAt.contains(number) ? 1 : 0
            guard let path = UnsafePointer<CChar>(bitPattern: a[index]) else { return -Int(EFAULT) }
            let text = String(cString: path)
            // An empty path stands for the descriptor itself.
            if index == 1, text.isEmpty { return onDescriptor(number, a) }
            guard let real = realPath(text) else { return -Int(ENOENT) }
            let result = real.withCString { pointer in
                var b = [a[0], a[1], a[2], a[3], a[4], a[5]]
                b[index] = Int(bitPattern: pointer)
                if index == 1 { b[0] = Int(AT_FDCWD) }
                return Linux.call(number, b[0], b[1], b[2], b[3], b[4], b[5])
            }
            guard number == Linux.open || number == Linux.openat, result >= 0 else { return result }
            let opened = descriptors.add(RealFile(self, result), for: process)
            if opened < 0 { _ = Linux.call(Linux.close, result) }
            return opened
        }
        switch number {
        case Linux.rename:
            guard let from = UnsafePointer<CChar>(bitPattern: a[0]), let to = UnsafePointer<CChar>(bitPattern: a[1]),
                let old = realPath(String(cString: from)), let new = realPath(String(cString: to))
            else { return -Int(ENOENT) }
            return old.withCString { old in
                new.withCString { Linux.call(number, Int(bitPattern: old), Int(bitPattern: $0)) }
            }
        case Linux.fsync, Linux.fdatasync: return process.diskError == EIO ? -Int(EIO) : 0
        case Linux.fstat, Linux.lseek, Linux.ftruncate, Linux.fchmod, Linux.fchown, Linux.getdents,
            Linux.flock:
            return onDescriptor(number, a)
        default: return nil
        }
    }

    private func onDescriptor(_ number: Int, _ a: UnsafePointer<Int>) -> Int {
        guard let file = descriptors[a[0]] else { return -Int(EBADF) }
        guard let real = file as? RealFile else {
            guard number == Linux.fstat || number == Linux.newfstatat else { return -Int(EINVAL) }
            let address = number == Linux.fstat ? a[1] : a[2]
            guard let info = UnsafeMutablePointer<stat>(bitPattern: address) else { return -Int(EFAULT) }
            info.pointee = stat()
            info.pointee.st_mode = file is Stream || file is Listener ? mode_t(S_IFSOCK) : mode_t(S_IFIFO)
            return 0
        }
        return Linux.call(number, real.number, a[1], a[2], a[3], a[4], a[5])
    }

    private func realPath(_ path: String) -> String? {
        if path.hasPrefix("/world") { return folder + path.dropFirst(6) }
        for hidden in [
            "/proc", "/sys", "/etc/resolv.conf", "/etc/hosts", "/etc/ssl", "/usr/lib/ssl", "/run", "/dev/urandom",
        ]
        where path.hasPrefix(hidden) { return nil }
        return path
    }
}
