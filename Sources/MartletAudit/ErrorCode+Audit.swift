package import MartletCore

extension ErrorCode {
    /// The file of the audit log cannot be opened.
    package static let auditFileUnavailable: ErrorCode = "audit.file_unavailable"
    /// Another process writes the file of the audit log.
    package static let auditFileInUse: ErrorCode = "audit.file_in_use"
    /// The file has something else than lines of an audit log.
    package static let auditFileForeign: ErrorCode = "audit.file_foreign"
    /// Lines could not be written.
    package static let auditNotWritten: ErrorCode = "audit.not_written"
    /// More events came than could be written.
    package static let auditOverflow: ErrorCode = "audit.overflow"
    /// The thread of a destination could not be started.
    package static let auditNotStarted: ErrorCode = "audit.not_started"
}

/// Why a destination of the audit log does not take lines.
package struct AuditError: CodedError, Equatable {
    package let code: ErrorCode
    package let message: String

    package init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }

    package static func == (left: AuditError, right: AuditError) -> Bool { left.code == right.code }
}
