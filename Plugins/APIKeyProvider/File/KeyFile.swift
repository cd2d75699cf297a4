internal import MartletCore
internal import MartletProvider

/// A file of keys on disk, which is read again when it has changed.
///
/// If a new version is invalid, the keys of the last valid one stay in use.
final class KeyFile: Sendable {
    private static let lockTimeout = Duration.seconds(10)
    private static let lockPause = Duration.milliseconds(20)

    private let file: WatchedFile<KeyTable, KeyTable.ParseError>

    /// Reads a file; one that is not there has no keys.
    /// - Throws: all errors in it.
    init(path: String) throws(KeyTable.ParseError) {
        file = try WatchedFile(path, unreadable: KeyFile.failure, parse: KeyFile.table)
    }

    var path: String { file.path }
    /// Whether there was no file.
    var wasMissing: Bool { file.wasMissing }
    /// The keys of the last valid version.
    var table: KeyTable { file.content }
    /// Why the version on the disk is not in use, if it is not.
    var failure: String? { file.failure }

    /// Reads the file if it has changed; blocks until it is read.
    func refresh(now: UnixTime) -> FileRefresh { file.refresh(now: now) }
}

// MARK: - Reading and writing

extension KeyFile {
    @Sendable private static func table(_ version: FileVersion?) throws(KeyTable.ParseError) -> KeyTable {
        guard let version else { return KeyTable() }
        guard version.mode & 0o077 == 0 else {
            let mode = String(version.mode, radix: 8)
            throw failure("others than its owner may use it (mode 0\(mode)): chmod 600")
        }
        return try KeyTable(version.bytes)
    }

    @Sendable private static func failure(_ reason: String) -> KeyTable.ParseError {
        KeyTable.ParseError(errors: [KeyTable.LineError(line: nil, reason: reason)])
    }

    /// The table on the disk.
    private func current() throws(StoreError) -> KeyTable {
        do throws(KeyTable.ParseError) { return try Self.read(path) } catch {
            throw StoreError(code: "api_key.file_unusable", message: "'\(path)': \(error)")
        }
    }

    private static func read(_ path: String) throws(KeyTable.ParseError) -> KeyTable {
        let version: FileVersion?
        do throws(FileVersion.Failure) { version = try FileVersion.read(path) } catch { throw failure(error.reason) }
        return try table(version)
    }

    /// Replaces the file by a table that can be read again.
    private func write(_ table: KeyTable) throws(KeyFileAccess.Failure) {
        let bytes = table.bytes
        guard bytes.count <= FileVersion.maximumBytes, (try? KeyTable(bytes)) == table else {
            throw KeyFileAccess.Failure(reason: "the keys would be too large")
        }
        try KeyFileAccess.replace(path, by: bytes)
    }

    /// Changes the file, one process after the other.
    /// - Parameter body: returns `nil` to leave it as it is.
    private func change(_ body: (inout KeyTable) -> APIKeyRecord?) async throws(StoreError) -> APIKeyRecord? {
        var waited = Duration.zero
        do throws(KeyFileAccess.Failure) {
            while waited < Self.lockTimeout {
                if let lock = try KeyFileAccess.tryLock(path) {
                    // Held to the end of the block.
                    defer { extendLifetime(lock) }
                    var table: KeyTable
                    do throws(StoreError) { table = try current() } catch {
                        throw KeyFileAccess.Failure(reason: error.message)
                    }
                    let before = table
                    let record = body(&table)
                    if table != before { try write(table) }
                    return record
                }
                try? await Task.sleep(for: Self.lockPause)
                waited += Self.lockPause
            }
        } catch {
            throw StoreError(code: "api_key.file_unusable", message: "'\(path)': \(error.reason)")
        }
        throw StoreError(
            code: "api_key.file_locked", message: "'\(path)': another process has been changing it for too long")
    }
}

extension KeyFile: APIKeyStoring {
    func add(_ key: APIKeyRecord) async throws(StoreError) -> Bool {
        try await change { table in
            guard table.keys[key.id] == nil else { return nil }
            table.set(key)
            return key
        } != nil
    }

    func key(_ id: String) async throws(StoreError) -> APIKeyRecord? { try current().keys[id] }

    func keys(after start: String, limit: Int) async throws(StoreError) -> [APIKeyRecord] {
        Array(try current().sorted.drop { $0.id <= start }.prefix(max(limit, 1)))
    }

    func revoke(_ id: String, at now: UnixTime) async throws(StoreError) -> APIKeyRecord? {
        try await change { table in
            guard var record = table.keys[id] else { return nil }
            if record.revokedAt == nil {
                record.revokedAt = now
                table.set(record)
            }
            return record
        }
    }

    func rotate(
        _ id: String, to digest: [UInt8], acceptingPreviousUntil end: UnixTime?, at now: UnixTime
    ) async throws(StoreError) -> APIKeyRecord? {
        try await change { table in
            guard var record = table.keys[id], record.revokedAt == nil else { return nil }
            record.previous = end.map { APIKeyRecord.Previous(digest: record.digest, endsAt: $0) }
            record.digest = digest
            record.rotatedAt = now
            table.set(record)
            return record
        }
    }

    /// Only commands write the file, so uses are not stored.
    func noteUses(_ uses: [(id: String, at: UnixTime)]) async throws(StoreError) {}

    /// Changes are found by ``refresh(now:)``.
    func changes(since version: Int64?) async throws(StoreError) -> APIKeyChanges {
        APIKeyChanges(version: version ?? 0, keys: [], isComplete: true)
    }
}
