internal import CSQLite
internal import MartletCore

extension AccountError {
    /// What a result code of SQLite means to callers.
    ///
    /// The words are SQLite's own for the code: its message for the statement could hold data.
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
        let words = unsafe sqlite3_errstr(status).map { unsafe String(cString: $0) } ?? "unknown"
        return .unavailable(code, "SQLite: \(words) (\(status))")
    }
}
