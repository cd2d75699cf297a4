internal import CSQLite
internal import MartletCore

extension AccountError {
    /// Maps an SQLite result code.
    ///
    /// Uses SQLite's text for the code, because its message for the statement could contain data.
    static func sqlite(_ status: Int32) -> AccountError {
        let code: ErrorCode =
            switch status & 0xFF {
            case SQLITE_BUSY, SQLITE_LOCKED: .accountsBusy
            case SQLITE_CORRUPT, SQLITE_NOTADB: .accountsCorrupt
            case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .accountsCannotOpen
            case SQLITE_READONLY: .accountsReadOnly
            case SQLITE_FULL: .accountsFull
            case SQLITE_IOERR: .accountsInputOutput
            default: .accountsFailed
            }
        let text = unsafe sqlite3_errstr(status).map { unsafe String(cString: $0) } ?? "unknown"
        return .unavailable(code, "SQLite: \(text) (\(status))")
    }
}
