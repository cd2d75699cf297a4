private import Glibc
internal import MartletCore
private import MartletCrypto
private import Synchronization

/// An htpasswd file on the disk: read whole, and read again when it has changed.
///
/// A new version that cannot be used is not used: the users of the last good one stay.
final class UserFile: Sendable {
    /// What tells one version of a file from another without reading it.
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
        /// `nil` while the file was written so recently that a later write could bear the same times.
        var stamp: Stamp?
        var failure: String?
    }

    /// What a look at the file came to.
    enum Refresh: Equatable, Sendable {
        case unchanged
        case changed
        /// It cannot be used, which was not known before.
        case refused(String)
        /// It still cannot be used.
        case stillRefused
    }

    private static let maximumBytes = 32 * 1024 * 1024
    /// How coarse the times of a file may be, in seconds.
    private static let timeGrain = 1

    let path: String
    private let state: Mutex<State>

    /// Reads a file.
    /// - Throws: everything that is wrong with it.
    init(path: String) throws(Htpasswd.Flaws) {
        self.path = path
        let version = try Self.read(path)
        // The first look reads it again: what was written meanwhile is not lost.
        state = Mutex(State(users: version.users, digest: version.digest, stamp: nil))
    }

    /// The users of the last good version.
    var users: Htpasswd { state.withLock { $0.users } }

    /// Why the version on the disk is not in use, if it is not.
    var failure: String? { state.withLock { $0.failure } }

    /// Looks whether the file has changed, and reads it if so.
    ///
    /// Blocks for as long as that takes.
    func refresh(now: UnixTime) -> Refresh {
        let stamp = Self.stamp(of: path)
        if let stamp, state.withLock({ $0.stamp == stamp }) { return .unchanged }
        do throws(Htpasswd.Flaws) {
            return adopt(try Self.read(path), now: now)
        } catch {
            let reason = error.description
            return state.withLock { state in
                defer { state.failure = reason }
                return state.failure == reason ? .stillRefused : .refused(reason)
            }
        }
    }

    private func adopt(_ version: Version, now: UnixTime) -> Refresh {
        let age = now.seconds &- Int64(version.stamp.modified[0])
        return state.withLock { state in
            state.stamp = age > Int64(Self.timeGrain) ? version.stamp : nil
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
    private static func read(_ path: String) throws(Htpasswd.Flaws) -> Version {
        guard !path.utf8.contains(0) else { throw refusal("the name has a NUL") }
        // A pipe would otherwise be waited for.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw refusal(systemReason()) }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw refusal(systemReason()) }
        guard status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG) else { throw refusal("it is not a regular file") }
        guard status.st_mode & UInt32(S_IWOTH) == 0 else { throw refusal("everybody may write to it") }
        let bytes = try contents(descriptor)
        var after = stat()
        guard unsafe fstat(descriptor, &after) == 0, stamp(after) == stamp(status) else {
            throw refusal("it was written to while it was read")
        }
        return Version(users: try Htpasswd(bytes), digest: SHA256.digest(bytes), stamp: stamp(status))
    }

    private static func contents(_ descriptor: Int32) throws(Htpasswd.Flaws) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return bytes }
            if count < 0 {
                if errno == EINTR { continue }
                throw refusal(systemReason())
            }
            bytes += chunk.prefix(count)
            guard bytes.count <= maximumBytes else { throw refusal("it is larger than \(maximumBytes >> 20)MiB") }
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

    private static func refusal(_ reason: String) -> Htpasswd.Flaws {
        Htpasswd.Flaws(all: [Htpasswd.Flaw(line: nil, reason)])
    }

    private static func systemReason() -> String {
        let number = errno
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }
}
