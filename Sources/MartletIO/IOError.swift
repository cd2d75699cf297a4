private import CLinux
package import MartletCore

/// A failed system call and its `errno`.
package struct IOError: CodedError {
    package var code: ErrorCode { "io.system_call_failed" }
    package let call: StaticString
    package let errno: Int32

    package init(_ call: StaticString, errno: Int32) {
        self.call = call
        self.errno = errno
    }

    /// The failure of the last system call of this thread.
    package init(_ call: StaticString) { self.init(call, errno: martlet_errno()) }

    /// Whether this system is out of descriptors, memory, buffers or local ports, which is not the peer's fault.
    package var isShortage: Bool { [EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL].contains(errno) }

    /// Whether every local port toward the peer is in use (`net.ipv4.ip_local_port_range`).
    package var isPortShortage: Bool { errno == EADDRNOTAVAIL }

    package var message: String { "\(call): \(unsafe String(cString: strerror(errno)))" }
    package var description: String { message }
}
