private import CLinux
internal import MartletConfig
private import Synchronization

/// Looks now and then whether files are others than they were.
final class FileWatch: Sendable {
    /// How often files are looked at.
    static let interval = Duration.seconds(1)

    private let files: Mutex<WatchedFiles>

    /// - Parameter paths: what has just been read.
    init(_ paths: [FilePath]) { files = Mutex(WatchedFiles(FileWatch.marks(of: paths))) }

    /// Whether some of the files have changed and seem to be complete.
    func look(_ paths: [FilePath]) -> Bool {
        let marks = FileWatch.marks(of: paths)
        return files.withLock { $0.look(marks) }
    }

    /// All files are about to be read anyhow.
    func settle() {
        let marks = FileWatch.marks(of: files.withLock { $0.paths })
        files.withLock { $0.settle(marks) }
    }

    private static func marks(of paths: [FilePath]) -> [FilePath: FileMark] {
        paths.reduce(into: [:]) { $0[$1] = FileMark($1.text) }
    }
}

/// What changes with a file: its place, its size or its time.
struct FileMark: Equatable, Sendable {
    private let numbers: [Int64]

    init(numbers: [Int64]) { self.numbers = numbers }

    /// - Parameter path: followed where it is a link; a file that is not there has a mark of its own.
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

/// What was seen of some files, without a file system.
///
/// A change counts once two looks in a row have seen the same: a pair of which one half is written yet is left alone. If it
/// is read all the same, it is refused, and the other half is the next change.
struct WatchedFiles {
    private var settled: [FilePath: FileMark]
    private var last: [FilePath: FileMark]

    /// - Parameter marks: of what has just been read.
    init(_ marks: [FilePath: FileMark]) {
        settled = marks
        last = marks
    }

    var paths: [FilePath] { Array(settled.keys) }

    /// - Returns: whether the files are to be read again.
    mutating func look(_ marks: [FilePath: FileMark]) -> Bool {
        // Another configuration, which has just been read.
        guard Set(marks.keys) == Set(settled.keys) else {
            settle(marks)
            return false
        }
        defer { last = marks }
        guard marks != settled, marks == last else { return false }
        settled = marks
        return true
    }

    /// The files are being read as they are now.
    mutating func settle(_ marks: [FilePath: FileMark]) {
        settled = marks
        last = marks
    }
}
