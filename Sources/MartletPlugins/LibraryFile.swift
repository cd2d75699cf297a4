private import CLinux
internal import MartletConfig

/// A library's file as the system sees it.
struct LibraryFile {
    /// Distinguishes contents of a file without reading them.
    struct Identity: Equatable, Sendable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let seconds: Int64
        let nanoseconds: Int64
    }

    /// The path without links.
    let path: String
    let identity: Identity
    let owner: UInt32
    let mode: UInt32

    /// - Throws: the system's error message.
    init(_ path: String) throws(FileReadError) {
        if let reason = FileProbe.readError(path) { throw FileReadError(reason: reason) }
        guard let resolved = unsafe realpath(path, nil) else { throw FileReadError(reason: "it has no path") }
        defer { unsafe free(resolved) }
        self.path = unsafe String(cString: resolved)
        var status = stat()
        guard unsafe stat(self.path, &status) == 0 else { throw FileReadError(reason: "it has no status") }
        owner = status.st_uid
        mode = status.st_mode
        identity = Identity(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec))
    }

    /// The first directory, from the file upwards, in which others than its owner may replace something; a sticky bit
    /// protects what they do not own, but not against a file that they put there first.
    var openDirectory: String? {
        var directory = path[...]
        var isNext = true
        while let slash = directory.lastIndex(of: "/") {
            directory = directory[..<slash]
            let name = directory.isEmpty ? "/" : String(directory)
            var status = stat()
            if unsafe stat(name, &status) == 0, status.st_mode & 0o022 != 0, isNext || status.st_mode & 0o1000 == 0 {
                return name
            }
            isNext = false
        }
        return nil
    }
}
