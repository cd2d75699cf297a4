private import Glibc
internal import MartletCore
private import MartletCrypto

/// Replaces a file of keys.
enum KeyFileAccess {
    /// What is wrong with a file.
    struct Failure: Error {
        let reason: String
    }

    /// Replaces the file atomically: a reader sees the old content or the new one, also after a crash.
    static func replace(_ path: String, by bytes: [UInt8]) throws(Failure) {
        let target = resolved(path)
        let random: [UInt8]
        do { random = try RandomBytes.make(8) } catch { throw Failure(reason: error.message) }
        let temporary = "\(target).\(Hexadecimal.text(random)).tmp"
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw systemFailure() }
        do throws(Failure) {
            defer { close(descriptor) }
            try keepOwner(of: target, descriptor)
            try write(bytes, descriptor)
            guard fsync(descriptor) == 0 else { throw systemFailure() }
        } catch {
            unsafe unlink(temporary)
            throw error
        }
        guard unsafe rename(temporary, target) == 0 else {
            let failure = systemFailure()
            unsafe unlink(temporary)
            throw failure
        }
        syncFolder(of: target)
    }

    /// A file that root changes stays readable for the user of the gateway.
    private static func keepOwner(of path: String, _ descriptor: Int32) throws(Failure) {
        var (old, new) = (stat(), stat())
        guard unsafe stat(path, &old) == 0 else { return }
        guard unsafe fstat(descriptor, &new) == 0 else { throw systemFailure() }
        guard old.st_uid != new.st_uid || old.st_gid != new.st_gid else { return }
        guard fchown(descriptor, old.st_uid, old.st_gid) == 0 else { throw systemFailure() }
    }

    private static func write(_ bytes: [UInt8], _ descriptor: Int32) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                throw systemFailure()
            }
            rest = rest.dropFirst(count)
        }
    }

    private static func syncFolder(of path: String) {
        let folder = path.utf8.lastIndex(of: 0x2F).map { String(path[...$0]) } ?? "."
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        close(descriptor)
    }

    /// The file behind symbolic links, which stay.
    private static func resolved(_ path: String) -> String {
        guard let text = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(text) }
        return unsafe String(cString: text)
    }

    // MARK: Locking

    /// A lock that the holder releases.
    struct Lock: ~Copyable {
        private let descriptor: Int32

        fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }
    }

    /// Tries to get the lock of a file, which is on a file of its own beside it: the file itself is replaced.
    /// - Returns: `nil` while another process has it.
    static func tryLock(_ path: String) throws(Failure) -> Lock? {
        guard !path.utf8.contains(0) else { throw Failure(reason: "the path contains a NUL byte") }
        let name = resolved(path) + ".lock"
        let descriptor = unsafe open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw systemFailure() }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return Lock(descriptor) }
        let number = errno
        close(descriptor)
        guard number == EWOULDBLOCK || number == EINTR else { throw systemFailure(number) }
        return nil
    }

    private static func systemFailure(_ number: Int32 = errno) -> Failure {
        guard let text = unsafe strerror(number) else { return Failure(reason: "error \(number)") }
        return Failure(reason: unsafe String(cString: text))
    }
}
