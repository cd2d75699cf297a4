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
