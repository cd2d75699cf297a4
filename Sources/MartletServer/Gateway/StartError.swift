package import MartletCore

/// The exit codes of the process (`Operations.md`), as `sysexits.h` numbers them.
package enum ExitCode: Int32, Sendable {
    case ok = 0
    /// `martlet explain`: the request would be rejected; `martlet apple migrate`: some users did not move.
    case rejected = 1
    case usage = 64
    /// `martlet audit verify`: the log was tampered with.
    case tampered = 65
    /// A required resource is unavailable: an address in use, an unreachable store.
    case unavailable = 69
    case internalFault = 70
    case configuration = 78
}

/// The error of a start, a reload or a command, with the exit code of the process.
package struct StartError: CodedError {
    package let code: ErrorCode
    /// One line for the operator.
    package let message: String
    package let exit: ExitCode

    package init(code: ErrorCode, message: String, exit: ExitCode) {
        self.code = code
        self.message = message
        self.exit = exit
    }

    /// The error of a part, which ends the start or the command.
    package init(_ error: some CodedError, exit: ExitCode) {
        self.init(code: error.code, message: error.message, exit: exit)
    }
}
