private import CLinux
package import MartletCore

/// A system call that failed: which one, and `errno`.
package struct IOError: Error, Sendable, CustomStringConvertible {
    package var code: ErrorCode { "io.system_call_failed" }
    package let call: StaticString
    package let errno: Int32

    package init(_ call: StaticString, errno: Int32) {
        self.call = call
        self.errno = errno
    }

    /// The failure of the call that has just returned.
    package init(_ call: StaticString) { self.init(call, errno: martlet_errno()) }

    /// Whether this side has run out of something; the other side has no part in it.
    package var isShortage: Bool { [EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL].contains(errno) }

    package var description: String { "\(call): \(unsafe String(cString: strerror(errno)))" }
}
