package import MartletCore

/// How the process ends (`Operations.md`; the numbers are those of `sysexits.h`).
package enum ExitCode: Int32, Sendable {
    case ok = 0
    /// `martlet explain`: the request would be refused.
    case refused = 1
    case usage = 64
    /// A service that is needed cannot be used: an address is taken, a store is away.
    case unavailable = 69
    case internalFault = 70
    case configuration = 78
}

/// Why the gateway could not start, or could not reload.
package struct StartError: Error, Sendable, CustomStringConvertible {
    package let code: ErrorCode
    /// For the operator, in one line.
    package let message: String
    package let exit: ExitCode

    package init(code: ErrorCode, message: String, exit: ExitCode) {
        self.code = code
        self.message = message
        self.exit = exit
    }

    package var description: String { "\(message) [\(code)]" }
}
