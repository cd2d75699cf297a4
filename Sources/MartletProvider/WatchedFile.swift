internal import Glibc
public import MartletCore
private import MartletCrypto

/// One version of a regular file, read whole.
public struct FileVersion: Sendable {
    /// Why a file cannot be read.
    public struct Failure: Error, Sendable {
        public let reason: String
    }

    /// The metadata by which versions of a file are distinguished without reading it.
    struct Stamp: Sendable, Equatable {
        /// The second in which it was last written.
        let seconds: Int64
        private let others: [Int64]

        init(_ status: stat) {
            seconds = Int64(status.st_mtim.tv_sec)
            others = [
                Int64(status.st_mtim.tv_nsec), Int64(status.st_ctim.tv_sec), Int64(status.st_ctim.tv_nsec),
                Int64(status.st_size), Int64(truncatingIfNeeded: status.st_dev),
                Int64(truncatingIfNeeded: status.st_ino),
            ]
        }

        /// That of the file as it is now; `nil` if there is none.
        init?(of path: String) {
            var status = stat()
            guard unsafe stat(path, &status) == 0 else { return nil }
            self.init(status)
        }
    }

    /// The size of the largest file that is read.
    public static let maximumBytes = 32 * 1024 * 1024

    public let bytes: [UInt8]
    /// Who may do what, such as `0o600`.
    public let mode: UInt32
    let stamp: Stamp

    /// Reads a file; blocks until it is read.
    /// - Returns: `nil` if there is none.
    public static func read(_ path: String) throws(Failure) -> FileVersion? {
        guard !path.utf8.contains(0) else { throw Failure(reason: "the path contains a NUL byte") }
        // Nonblocking, because opening a pipe would wait for a writer.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw systemFailure()
        }
        defer { close(descriptor) }
        var (status, after) = (stat(), stat())
        guard unsafe fstat(descriptor, &status) == 0 else { throw systemFailure() }
        guard status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG) else {
            throw Failure(reason: "it is not a regular file")
        }
        let bytes = try contents(descriptor)
        let stamp = Stamp(status)
        guard unsafe fstat(descriptor, &after) == 0, Stamp(after) == stamp else {
            throw Failure(reason: "it changed while it was read")
        }
        return FileVersion(bytes: bytes, mode: status.st_mode & 0o777, stamp: stamp)
    }

    private static func contents(_ descriptor: Int32) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return bytes }
            if count < 0 {
                if errno == EINTR { continue }
                throw systemFailure()
            }
            bytes += chunk.prefix(count)
            guard bytes.count <= maximumBytes else {
                throw Failure(reason: "it is larger than \(maximumBytes >> 20)MiB")
            }
        }
    }

    private static func systemFailure() -> Failure {
        let number = errno
        guard let text = unsafe strerror(number) else { return Failure(reason: "error \(number)") }
        return Failure(reason: unsafe String(cString: text))
    }
}

/// A file of a provider's configuration, which is read again when it has changed.
///
/// If a new version is invalid, the content of the last valid one stays in use.
public final class WatchedFile<Content: Sendable, Failure: Error & CustomStringConvertible>: Sendable {
    private struct State {
        var content: Content
        var digest: [UInt8]
        /// `nil` while the file was written so recently that a later write could have the same times.
        var stamp: FileVersion.Stamp?
        var failure: String?
    }

    /// The resolution of a file's times, in seconds.
    private let timeResolution: Int64 = 1

    public let path: String
    /// Whether there was no file at first.
    public let wasMissing: Bool
    private let parse: @Sendable (FileVersion?) throws(Failure) -> Content
    private let unreadable: @Sendable (String) -> Failure
    private let state: Lock<State>

    /// Reads a file; blocks until it is read.
    /// - Parameters:
    ///   - unreadable: the error of a file that cannot be read, for this reason.
    ///   - parse: evaluates a version; `nil` if there is no file.
    /// - Throws: what `parse` does.
    public init(
        _ path: String, unreadable: @escaping @Sendable (String) -> Failure,
        parse: @escaping @Sendable (FileVersion?) throws(Failure) -> Content
    ) throws(Failure) {
        self.path = path
        self.parse = parse
        self.unreadable = unreadable
        let version = try Self.read(path, unreadable)
        wasMissing = version == nil
        // The first refresh reads the file again, so that a write in between is not missed.
        state = Lock(
            State(content: try parse(version), digest: version.map { SHA256.digest($0.bytes) } ?? [], stamp: nil))
    }

    /// The content of the last valid version.
    public var content: Content { state.withLock { $0.content } }

    /// Why the version on the disk is not in use, if it is not.
    public var failure: String? { state.withLock { $0.failure } }

    /// Reads the file if it has changed; blocks until it is read.
    public func refresh(now: UnixTime) -> FileRefresh {
        if let stamp = FileVersion.Stamp(of: path), state.withLock({ $0.stamp == stamp }) { return .unchanged }
        do throws(Failure) {
            let version = try Self.read(path, unreadable)
            let content = try parse(version)
            guard let version else {
                // It has never been there.
                if state.withLock({ $0.digest.isEmpty && $0.failure == nil }) { return .unchanged }
                throw unreadable("there is no such file")
            }
            return adopt(content, version, now: now)
        } catch {
            let reason = error.description
            return state.withLock { state in
                defer { state.failure = reason }
                return state.failure == reason ? .stillFailing : .failed(reason)
            }
        }
    }

    private func adopt(_ content: Content, _ version: FileVersion, now: UnixTime) -> FileRefresh {
        let age = now.seconds &- version.stamp.seconds
        let digest = SHA256.digest(version.bytes)
        return state.withLock { state in
            state.stamp = age > timeResolution ? version.stamp : nil
            let isNew = state.digest != digest || state.failure != nil
            (state.failure, state.content, state.digest) = (nil, content, digest)
            return isNew ? .changed : .unchanged
        }
    }

    private static func read(_ path: String, _ unreadable: (String) -> Failure) throws(Failure) -> FileVersion? {
        do throws(FileVersion.Failure) { return try FileVersion.read(path) } catch { throw unreadable(error.reason) }
    }
}

/// What has become of a file since it was read last.
public enum FileRefresh: Sendable, Equatable {
    case unchanged
    case changed
    /// It has become unusable.
    case failed(String)
    /// It is still unusable for the same reason.
    case stillFailing
}
