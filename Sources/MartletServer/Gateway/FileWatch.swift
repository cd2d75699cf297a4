private import CLinux
package import MartletConfig
internal import MartletCore

/// Detects changes of files by polling their metadata.
package final class FileWatch: Sendable {
    /// The polling interval.
    package static let interval = Duration.seconds(1)

    private let files: Lock<WatchedFiles>

    /// - Parameter paths: the files that have just been read.
    package init(_ paths: [FilePath]) { files = Lock(WatchedFiles(FileWatch.fingerprints(of: paths))) }

    /// Whether some of the files have changed since they were read and have stopped changing.
    package func poll(_ paths: [FilePath]) -> Bool {
        let fingerprints = FileWatch.fingerprints(of: paths)
        return files.withLock { $0.poll(fingerprints) }
    }

    /// Records the current state of all files, which are about to be read.
    package func reset() {
        let fingerprints = FileWatch.fingerprints(of: files.withLock { $0.paths })
        files.withLock { $0.reset(fingerprints) }
    }

    private static func fingerprints(of paths: [FilePath]) -> [FilePath: FileFingerprint] {
        paths.reduce(into: [:]) { $0[$1] = FileFingerprint($1.text) }
    }
}

/// Metadata that changes with a file: device, inode, size and modification time.
struct FileFingerprint: Equatable, Sendable {
    private let numbers: [Int64]

    init(numbers: [Int64]) { self.numbers = numbers }

    /// - Parameter path: symbolic links are followed; a missing file has a fingerprint of its own.
    init(_ path: String) {
        var found = stat()
        guard unsafe stat(path, &found) == 0 else {
            numbers = []
            return
        }
        numbers = [
            Int64(truncatingIfNeeded: found.st_dev), Int64(truncatingIfNeeded: found.st_ino), Int64(found.st_size),
            Int64(found.st_mtim.tv_sec), Int64(found.st_mtim.tv_nsec),
        ]
    }
}

/// The change detection of ``FileWatch``, without a file system.
///
/// A change is reported once two polls in a row have seen the same state, so that a certificate and its key are not
/// read between two writes. If they are read anyway, the reload fails, and the second write is the next change.
struct WatchedFiles {
    private var loaded: [FilePath: FileFingerprint]
    private var last: [FilePath: FileFingerprint]

    /// - Parameter fingerprints: of the files that have just been read.
    init(_ fingerprints: [FilePath: FileFingerprint]) {
        loaded = fingerprints
        last = fingerprints
    }

    var paths: [FilePath] { Array(loaded.keys) }

    mutating func poll(_ fingerprints: [FilePath: FileFingerprint]) -> Bool {
        // Another configuration, which has just been read.
        guard Set(fingerprints.keys) == Set(loaded.keys) else {
            reset(fingerprints)
            return false
        }
        defer { last = fingerprints }
        guard fingerprints != loaded, fingerprints == last else { return false }
        loaded = fingerprints
        return true
    }

    /// Records the state in which the files are being read.
    mutating func reset(_ fingerprints: [FilePath: FileFingerprint]) {
        loaded = fingerprints
        last = fingerprints
    }
}
