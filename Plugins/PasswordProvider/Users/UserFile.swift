private import Glibc
internal import MartletCore
private import MartletCrypto

/// An htpasswd file on disk, which is read again when it has changed.
///
/// If a new version is invalid, the users of the last valid one stay in use.
final class UserFile: Sendable {
    /// The metadata by which versions of a file are distinguished without reading it.
    private struct Stamp: Equatable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let modified: [Int]
        let changed: [Int]
    }

    /// One version of the file.
    private struct Version {
        let users: Htpasswd
        let digest: [UInt8]
        let stamp: Stamp
    }

    private struct State {
        var users: Htpasswd
        var digest: [UInt8]
        /// `nil` while the file was written so recently that a later write could have the same times.
        var stamp: Stamp?
        var failure: String?
    }

    /// The result of checking the file.
    enum Refresh: Equatable, Sendable {
        case unchanged
        case changed
        /// It has become unusable.
        case failed(String)
        /// It is still unusable for the same reason.
        case stillFailing
    }

    private static let maximumBytes = 32 * 1024 * 1024
    /// The resolution of a file's times, in seconds.
    private static let timeResolution = 1

    let path: String
    private let state: Lock<State>

    /// Reads a file.
    /// - Throws: all errors in it.
    init(path: String) throws(Htpasswd.ParseError) {
        self.path = path
        let version = try Self.read(path)
        // The first refresh reads the file again, so that a write in between is not missed.
        state = Lock(State(users: version.users, digest: version.digest, stamp: nil))
    }

    /// The users of the last valid version.
    var users: Htpasswd { state.withLock { $0.users } }

    /// Why the version on the disk is not in use, if it is not.
    var failure: String? { state.withLock { $0.failure } }

    /// Reads the file if it has changed; blocks until it is read.
    func refresh(now: UnixTime) -> Refresh {
        let stamp = Self.stamp(of: path)
        if let stamp, state.withLock({ $0.stamp == stamp }) { return .unchanged }
        do throws(Htpasswd.ParseError) {
            return adopt(try Self.read(path), now: now)
        } catch {
            let reason = error.description
            return state.withLock { state in
                defer { state.failure = reason }
                return state.failure == reason ? .stillFailing : .failed(reason)
            }
        }
    }

    private func adopt(_ version: Version, now: UnixTime) -> Refresh {
        let age = now.seconds &- Int64(version.stamp.modified[0])
        return state.withLock { state in
            state.stamp = age > Int64(Self.timeResolution) ? version.stamp : nil
            let isNew = state.digest != version.digest || state.failure != nil
            state.failure = nil
            state.users = version.users
            state.digest = version.digest
            return isNew ? .changed : .unchanged
        }
    }
}

// MARK: - Reading

extension UserFile {
    private static func read(_ path: String) throws(Htpasswd.ParseError) -> Version {
        guard !path.utf8.contains(0) else { throw failure("the path contains a NUL byte") }
        // Nonblocking, because opening a pipe would wait for a writer.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw failure(systemReason()) }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw failure(systemReason()) }
        guard status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG) else { throw failure("it is not a regular file") }
        guard status.st_mode & UInt32(S_IWOTH) == 0 else { throw failure("it is world-writable") }
        let bytes = try contents(descriptor)
        var after = stat()
        guard unsafe fstat(descriptor, &after) == 0, stamp(after) == stamp(status) else {
            throw failure("it changed while it was read")
        }
        return Version(users: try Htpasswd(bytes), digest: SHA256.digest(bytes), stamp: stamp(status))
    }

    private static func contents(_ descriptor: Int32) throws(Htpasswd.ParseError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return bytes }
            if count < 0 {
                if errno == EINTR { continue }
                throw failure(systemReason())
            }
            bytes += chunk.prefix(count)
            guard bytes.count <= maximumBytes else { throw failure("it is larger than \(maximumBytes >> 20)MiB") }
        }
    }

    private static func stamp(of path: String) -> Stamp? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? stamp(status) : nil
    }

    private static func stamp(_ status: stat) -> Stamp {
        Stamp(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            modified: [status.st_mtim.tv_sec, status.st_mtim.tv_nsec],
            changed: [status.st_ctim.tv_sec, status.st_ctim.tv_nsec])
    }

    private static func failure(_ reason: String) -> Htpasswd.ParseError {
        Htpasswd.ParseError(errors: [Htpasswd.LineError(line: nil, reason)])
    }

    private static func systemReason() -> String {
        let number = errno
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }
}
