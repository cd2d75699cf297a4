internal import MartletCore
private import MartletCrypto
internal import MartletProvider

/// A file of keys on disk, which is read again when it has changed.
///
/// If a new version is invalid, the keys of the last valid one stay in use.
final class KeyFile: Sendable {
    private struct State {
        var table: KeyTable
        var digest: [UInt8]
        /// `nil` while the file was written so recently that a later write could have the same times.
        var stamp: KeyFileAccess.Stamp?
        var failure: String?
    }

    /// The result of checking the file.
    enum Refresh: Equatable, Sendable {
        case unchanged
        /// - Parameter keys: those that are new, different or gone.
        case changed([APIKeyRecord])
        /// It has become unusable.
        case failed(String)
        /// It is still unusable for the same reason.
        case stillFailing
    }

    /// The resolution of a file's times, in seconds.
    private static let timeResolution: Int64 = 1
    private static let lockTimeout = Duration.seconds(10)
    private static let lockPause = Duration.milliseconds(20)

    let path: String
    /// Whether there was no file.
    let wasMissing: Bool
    private let state: Lock<State>

    /// Reads a file; one that is not there has no keys.
    /// - Throws: all errors in it.
    init(path: String) throws(KeyTable.ParseError) {
        self.path = path
        let version = try Self.read(path)
        wasMissing = version == nil
        // The first refresh reads the file again, so that a write in between is not missed.
        state = Lock(State(table: version?.table ?? KeyTable(), digest: version?.digest ?? [], stamp: nil))
    }

    /// How many keys the last valid version has.
    var count: Int { state.withLock { $0.table.keys.count } }
    /// Why the version on the disk is not in use, if it is not.
    var failure: String? { state.withLock { $0.failure } }

    /// A key of the last valid version.
    func known(_ id: String) -> APIKeyRecord? { state.withLock { $0.table.keys[id] } }

    /// Reads the file if it has changed; blocks until it is read.
    func refresh(now: UnixTime) -> Refresh {
        let stamp = KeyFileAccess.stamp(of: path)
        if let stamp, state.withLock({ $0.stamp == stamp }) { return .unchanged }
        do throws(KeyTable.ParseError) {
            guard let version = try Self.read(path) else {
                // It has never been there.
                if state.withLock({ $0.digest.isEmpty && $0.failure == nil }) { return .unchanged }
                throw Self.failure("there is no such file")
            }
            return adopt(version, now: now)
        } catch {
            let reason = error.description
            return state.withLock { state in
                defer { state.failure = reason }
                return state.failure == reason ? .stillFailing : .failed(reason)
            }
        }
    }

    private func adopt(_ version: Parsed, now: UnixTime) -> Refresh {
        let age = now.seconds &- version.stamp.seconds
        return state.withLock { state in
            state.stamp = age > Self.timeResolution ? version.stamp : nil
            let isNew = state.digest != version.digest || state.failure != nil
            guard isNew else { return .unchanged }
            let differences = state.table.differences(to: version.table)
            state.failure = nil
            state.table = version.table
            state.digest = version.digest
            return .changed(differences)
        }
    }
}

// MARK: - Reading and writing

extension KeyFile {
    /// One version of the file.
    private struct Parsed {
        let table: KeyTable
        let digest: [UInt8]
        let stamp: KeyFileAccess.Stamp
    }

    private static func read(_ path: String) throws(KeyTable.ParseError) -> Parsed? {
        let version: KeyFileAccess.Version?
        do throws(KeyFileAccess.Failure) { version = try KeyFileAccess.read(path) } catch {
            throw failure(error.reason)
        }
        guard let version else { return nil }
        return Parsed(
            table: try KeyTable(version.bytes), digest: SHA256.digest(version.bytes), stamp: version.stamp)
    }

    private static func failure(_ reason: String) -> KeyTable.ParseError {
        KeyTable.ParseError(errors: [KeyTable.LineError(line: nil, reason: reason)])
    }

    /// The table on the disk.
    private func current() throws(StoreError) -> KeyTable {
        do throws(KeyTable.ParseError) { return try Self.read(path)?.table ?? KeyTable() } catch {
            throw StoreError(code: "api_key.file_unusable", message: "'\(path)': \(error)")
        }
    }

    /// Replaces the file by a table that can be read again.
    private func write(_ table: KeyTable) throws(KeyFileAccess.Failure) {
        let bytes = table.bytes
        guard bytes.count <= KeyFileAccess.maximumBytes, (try? KeyTable(bytes)) == table else {
            throw KeyFileAccess.Failure(reason: "the keys would be too large")
        }
        try KeyFileAccess.replace(path, by: bytes)
    }

    /// Changes the file, one process after the other.
    /// - Parameter body: returns `nil` to leave it as it is.
    private func change(
        _ body: (inout KeyTable) -> APIKeyRecord?
    ) async throws(StoreError) -> APIKeyRecord? {
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
