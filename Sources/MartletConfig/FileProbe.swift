private import CLinux
internal import MartletCore

/// What can be told of a file that a configuration names, before anybody uses it.
package enum FileProbe {
    /// Why a file cannot be read, in the system's words; `nil` if it can.
    package static func readFailure(_ path: String) -> String? {
        do throws(FileFailure) {
            try withStatus(of: path) { _ in }
            return nil
        } catch {
            return error.reason
        }
    }

    /// What is wrong with the permissions of a file with a secret; `nil` where only its owner may read it, or where
    /// nothing can be told.
    package static func exposure(_ path: String) -> String? {
        var mode: UInt32 = 0
        guard (try? withStatus(of: path, { mode = $0.st_mode })) != nil, mode & 0o044 != 0 else { return nil }
        let who = mode & 0o004 != 0 ? "everybody" : "its group"
        let bits = String(mode & 0o777, radix: 8)
        return "\(quoted(path)) holds a secret, and \(who) may read it (mode 0\(bits)): chmod 600, or 400"
    }

    private static func withStatus(
        of path: String, _ body: (stat) -> Void
    ) throws(FileFailure) {
        guard !path.utf8.contains(0) else { throw FileFailure(reason: "the name has a NUL") }
        let descriptor = unsafe path.withCString { unsafe martlet_open_read_nonblocking($0) }
        guard descriptor >= 0 else { throw systemFailure() }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw systemFailure() }
        guard status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG) else {
            throw FileFailure(reason: "it is not a regular file")
        }
        body(status)
    }
}

extension Diagnostics {
    /// Warns of a file with a secret that others than its owner may read.
    package mutating func warnOfExposure(_ path: String, at location: SourceLocation) {
        if let text = FileProbe.exposure(path) { warning(.configFileExposed, at: location, text) }
    }
}
