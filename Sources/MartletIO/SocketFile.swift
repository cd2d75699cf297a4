private import CLinux

/// The file of a listening Unix socket.
package struct SocketFile: Sendable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64

    /// The file at a Unix socket's address, if it exists and is a socket.
    package init?(of address: SocketEndpoint) {
        guard let path = address.path else { return nil }
        var (device, inode): (UInt64, UInt64) = (0, 0)
        guard unsafe martlet_socket_file(path, &device, &inode) == 1 else { return nil }
        self.path = path
        self.device = device
        self.inode = inode
    }

    /// Whether no one but the owner and the group of a Unix socket's file may open it: who may not write it cannot
    /// connect (unix(7)).
    package static func isPrivate(_ address: SocketEndpoint) -> Bool {
        guard let path = address.path else { return false }
        var facts = stat()
        guard unsafe lstat(path, &facts) == 0, facts.st_mode & 0o170000 == 0o140000 else { return false }
        return facts.st_mode & 0o002 == 0
    }

    /// Deletes the file, unless another file has replaced it.
    package func remove() {
        var (device, inode): (UInt64, UInt64) = (0, 0)
        guard unsafe martlet_socket_file(path, &device, &inode) == 1 else { return }
        if device == self.device, inode == self.inode { unsafe _ = unlink(path) }
    }
}

/// The owner, group and mode of a Unix socket's file; `nil` leaves them unchanged.
package struct SocketPermissions: Sendable, Hashable {
    package var owner: UInt32?
    package var group: UInt32?
    /// Permission bits, such as `0o660`.
    package var mode: UInt32?

    package init() {}

    /// Sets the owner, group and mode of a socket's file; does not follow a symbolic link.
    package func apply(to address: SocketEndpoint) throws(IOError) {
        guard let path = address.path else { return }
        if owner != nil || group != nil {
            guard unsafe lchown(path, owner ?? .max, group ?? .max) == 0 else { throw IOError("chown") }
        }
        if let mode {
            guard unsafe fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == 0 else { throw IOError("chmod") }
        }
    }
}

/// Looks up users and groups of the system.
package enum SystemAccount {
    /// The ID of a user, by name or as a decimal ID; `nil` for an unknown name.
    package static func user(_ name: String) -> UInt32? { UInt32(name) ?? number(unsafe martlet_user_number(name)) }

    /// The ID of a group, by name or as a decimal ID; `nil` for an unknown name.
    package static func group(_ name: String) -> UInt32? { UInt32(name) ?? number(unsafe martlet_group_number(name)) }

    private static func number(_ found: Int64) -> UInt32? { found < 0 ? nil : UInt32(truncatingIfNeeded: found) }
}
