internal import MartletCore
internal import MartletProvider

/// An htpasswd file on disk, which is read again when it has changed.
typealias UserFile = WatchedFile<Htpasswd, Htpasswd.ParseError>

extension UserFile {
    /// Reads a file.
    /// - Throws: all errors in it.
    convenience init(path: String) throws(Htpasswd.ParseError) {
        @Sendable func failure(_ reason: String) -> Htpasswd.ParseError {
            Htpasswd.ParseError(errors: [Htpasswd.LineError(line: nil, reason)])
        }
        try self.init(path, unreadable: failure) { version throws(Htpasswd.ParseError) in
            guard let version else { throw failure("No such file or directory") }
            guard version.mode & 0o002 == 0 else { throw failure("it is world-writable") }
            return try Htpasswd(version.bytes)
        }
    }

    /// The users of the last valid version.
    var users: Htpasswd { content }
}
