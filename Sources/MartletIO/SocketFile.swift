private import CLinux

/// The file through which a listening Unix socket is found.
package struct SocketFile: Sendable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64

    /// The file at a Unix socket's address, if there is one and it is a socket.
    package init?(of address: SocketEndpoint) {
        guard let path = address.path else { return nil }
        var (device, inode): (UInt64, UInt64) = (0, 0)
        guard unsafe martlet_socket_file(path, &device, &inode) == 1 else { return nil }
        self.path = path
        self.device = device
        self.inode = inode
    }

    /// Deletes the file, unless another has taken its place.
    package func remove() {
        var (device, inode): (UInt64, UInt64) = (0, 0)
        guard unsafe martlet_socket_file(path, &device, &inode) == 1 else { return }
        if device == self.device, inode == self.inode { unsafe _ = unlink(path) }
    }
}

/// Who owns a Unix socket's file, and who may connect to it; what is `nil` stays as it is.
package struct SocketPermissions: Sendable, Hashable {
    package var owner: UInt32?
    package var group: UInt32?
    /// Permission bits, such as `0o660`.
    package var mode: UInt32?

    package init() {}

    /// Gives a socket's file its owner, group and mode; a symbolic link in its place is not followed.
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

/// Users and groups of the system.
package enum SystemAccount {
    /// A user's number by name, or the number itself; `nil` for one that the system does not know.
    package static func user(_ name: String) -> UInt32? { UInt32(name) ?? number(unsafe martlet_user_number(name)) }

    /// The same for a group.
    package static func group(_ name: String) -> UInt32? { UInt32(name) ?? number(unsafe martlet_group_number(name)) }

    private static func number(_ found: Int64) -> UInt32? { found < 0 ? nil : UInt32(truncatingIfNeeded: found) }
}
