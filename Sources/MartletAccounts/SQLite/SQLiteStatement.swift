internal import CSQLite

/// A prepared statement of one connection; freed before the connection.
@safe final class SQLiteStatement {
    private let pointer: OpaquePointer

    init(_ text: String, in database: OpaquePointer) throws(AccountError) {
        var pointer: OpaquePointer?
        let status = unsafe sqlite3_prepare_v3(database, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
        guard status == SQLITE_OK, let pointer = unsafe pointer else { throw .sqlite(status) }
        unsafe self.pointer = unsafe pointer
    }

    deinit { unsafe sqlite3_finalize(pointer) }

    /// Runs the statement and returns all rows.
    func run(_ values: [Query.Value]) throws(AccountError) -> [Row] {
        defer {
            unsafe sqlite3_reset(pointer)
            unsafe sqlite3_clear_bindings(pointer)
        }
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
        var rows: [Row] = []
        while true {
            switch unsafe sqlite3_step(pointer) {
            case SQLITE_ROW: rows.append(try row())
            case SQLITE_DONE: return rows
            case let status: throw .sqlite(status)
            }
        }
    }

    private func bind(_ value: Query.Value, at index: Int32) throws(AccountError) {
        let status: Int32
        switch value {
        case .integer(let number): status = unsafe sqlite3_bind_int64(pointer, index, number)
        case .text(let text):
            let bytes = Array(text.utf8)
            let pointer = unsafe pointer
            status = unsafe bytes.withUnsafeBytes { raw in
                unsafe martlet_sqlite_bind_text(pointer, index, raw.baseAddress, Int32(clamping: raw.count))
            }
        }
        guard status == SQLITE_OK else { throw .sqlite(status) }
    }

    private func row() throws(AccountError) -> Row {
        var columns: [String?] = []
        let count = unsafe sqlite3_column_count(pointer)
        for index in 0..<count { columns.append(try column(index)) }
        return Row(columns: columns)
    }

    private func column(_ index: Int32) throws(AccountError) -> String? {
        guard unsafe sqlite3_column_type(pointer, index) != SQLITE_NULL else { return nil }
        guard let start = unsafe sqlite3_column_text(pointer, index) else { throw .sqlite(SQLITE_NOMEM) }
        let count = Int(unsafe sqlite3_column_bytes(pointer, index))
        let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .corrupt }
        return text
    }
}
