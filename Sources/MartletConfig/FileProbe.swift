private import CLinux

/// Checks a file that a configuration names before it is used.
@frozen package enum FileProbe {
    /// The system's error message for a file that cannot be read; `nil` if it can.
    package static func readError(_ path: String) -> String? {
        do throws(FileReadError) {
            try withRegularFile(path) { _, _ in }
            return nil
        } catch {
            return error.reason
        }
    }

    /// A message about a file with a secret that others than its owner may read; `nil` if only the owner may, or if the
    /// permissions cannot be read.
    ///
    /// The group of a file of root's is one that an administrator has chosen: `root:martlet`, mode 0640.
    package static func exposure(_ path: String) -> String? {
        guard let (mode, owner) = try? withRegularFile(path, { ($1.st_mode, $1.st_uid) }) else { return nil }
        guard mode & (owner == 0 ? 0o004 : 0o044) != 0 else { return nil }
        let who = mode & 0o004 != 0 ? "everyone" : "its group"
        let bits = String(mode & 0o777, radix: 8)
        return "\(quoted(path)) holds a secret but is readable by \(who) (mode 0\(bits)): chmod 600 or 400"
    }

    /// Why no file can be written at a path, whoever tries: it is a folder, or would be in one that does not exist; `nil`
    /// if neither is so. Opening it may still fail.
    package static func creationError(_ path: String) -> String? {
        guard !path.utf8.contains(0) else { return "the name contains a NUL byte" }
        if let mode = mode(of: path) { return mode & UInt32(S_IFMT) == UInt32(S_IFDIR) ? "it is a folder" : nil }
        guard martlet_errno() == ENOENT || martlet_errno() == ENOTDIR else { return nil }
        guard let slash = path.utf8.lastIndex(of: 0x2F) else { return nil }
        let folder = path[..<slash].isEmpty ? "/" : String(path[..<slash])
        if let mode = mode(of: folder) { return mode & UInt32(S_IFMT) == UInt32(S_IFDIR) ? nil : "not in a folder" }
        return martlet_errno() == ENOENT || martlet_errno() == ENOTDIR ? "its folder does not exist" : nil
    }

    private static func mode(of path: String) -> UInt32? {
        var status = stat()
        return unsafe path.withCString { unsafe stat($0, &status) } == 0 ? status.st_mode : nil
    }
}

extension ConfigurationReader {
    /// Records an error for a file that cannot be written, whoever tries.
    mutating func checkWritable(_ file: Located<FilePath>?, _ key: String) {
        guard let file, let reason = FileProbe.creationError(file.value.text) else { return }
        error(
            .configFileUnwritable, at: file.location, "\(key): cannot open \(quoted(file.value.text)): \(reason)")
    }
}

extension Diagnostics {
    /// Warns of a file with a secret that others than its owner may read.
    package mutating func warnOfExposure(_ path: String, at location: SourceLocation) {
        if let text = FileProbe.exposure(path) { warning(.configFileExposed, at: location, text) }
    }
}
