internal import MartletAccounts
internal import MartletCore
internal import MartletDecisions
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// The actions of `martlet key` on the keys of one provider.
struct KeyAdministration {
    struct Outcome {
        /// The new key, which is printed alone on standard output; `nil` without one.
        var key: Secret?
        let line: String
        let record: APIKeyRecord
        /// The digest of the key that a rotation has replaced.
        var replaced: [UInt8]?
    }

    private static let pageSize = 500

    var issuing: any APIKeyIssuing
    /// The provider's name in `providers:`.
    let provider: String
    /// The account store, for keys of accounts; `nil` without `accounts:`.
    var accounts: AccountStore?
    let clock: Clock

    func create(_ creation: KeyArguments.Creation) async throws(StartError) -> Outcome {
        if creation.isAccount { try await checkAccount(creation.subject) }
        let now = clock.unixTime
        let request = APIKeyRequest(
            subject: creation.subject, isAccount: creation.isAccount, claims: creation.claims, scopes: creation.scopes,
            expiresAt: creation.lifetime.map { now.advanced(bySeconds: $0.wholeSeconds) })
        let issued = try await storing { () async throws(StoreError) in try await issuing.issue(request) }
        let subject = creation.isAccount ? creation.subject : "\(provider):\(creation.subject)"
        let end = issued.record.expiresAt.map { ", expires \(Self.text($0))" } ?? ""
        return Outcome(
            key: issued.key,
            line: "key \(issued.record.id) of \(TerminalText.escaped(subject)) created\(end); it is not shown again",
            record: issued.record)
    }

    func revoke(_ id: String) async throws(StartError) -> Outcome {
        let record = try await storing { () async throws(StoreError) in
            try await issuing.keys.revoke(id, at: clock.unixTime)
        }
        guard let record else { throw Self.unknown }
        return Outcome(line: "key \(record.id) revoked", record: record)
    }

    func rotate(_ id: String, grace: Duration) async throws(StartError) -> Outcome {
        let known = try await storing { () async throws(StoreError) in try await issuing.keys.key(id) }
        guard let known else { throw Self.unknown }
        // A key that has expired would be replaced by one that has expired, too.
        guard known.state(at: clock.unixTime) == "active" else { throw Self.inactive(known.state(at: clock.unixTime)) }
        let issued = try await storing { () async throws(StoreError) in try await issuing.rotate(id, grace: grace) }
        guard let issued else { throw Self.inactive("revoked") }
        let old =
            issued.record.previous.map { "the old one is valid until \(Self.text($0.endsAt))" } ?? "the old one is void"
        return Outcome(
            key: issued.key, line: "key \(id) rotated; \(old); the new one is not shown again", record: issued.record,
            replaced: known.digest)
    }

    /// Undoes what has made a key that could not be printed: the one before is accepted again, and a new one is revoked.
    /// - Returns: a line about it.
    func takeBack(_ outcome: Outcome) async throws(StartError) -> String {
        let id = outcome.record.id
        guard let digest = outcome.replaced else {
            _ = try await revoke(id)
            return "the key could not be printed, and key \(id) is revoked"
        }
        _ = try await storing { () async throws(StoreError) in
            try await issuing.keys.rotate(id, to: digest, acceptingPreviousUntil: nil, at: clock.unixTime)
        }
        return "the new key could not be printed, and the old key \(id) is valid again"
    }

    /// Lists keys by id.
    /// - Parameter print: receives each key.
    func list(after start: String, limit: Int?, print: (APIKeyRecord) -> Void) async throws(StartError) {
        var (position, left) = (start, limit ?? .max)
        while left > 0 {
            let (begin, count) = (position, min(left, Self.pageSize))
            let keys = try await storing { () async throws(StoreError) in
                try await issuing.keys.keys(after: begin, limit: count)
            }
            for key in keys { print(key) }
            guard keys.count == count, let last = keys.last else { return }
            left -= keys.count
            position = last.id
        }
    }

    /// A key of an account is good for nothing without the account.
    private func checkAccount(_ subject: String) async throws(StartError) {
        guard let accounts else {
            throw StartError(
                code: "key.no_accounts", message: "--account requires a block 'accounts'", exit: .configuration)
        }
        let account: AccountRecord?
        do throws(AccountError) { account = try await accounts.account(subject) } catch { throw StartError(error) }
        guard let account, account.deletion == nil else {
            throw StartError(code: "key.unknown_account", message: "there is no such account", exit: .usage)
        }
    }

    private static let unknown = StartError(code: "key.unknown", message: "there is no such key", exit: .usage)

    private static func inactive(_ state: String) -> StartError {
        StartError(code: "key.not_active", message: "the key is \(state): create another one", exit: .usage)
    }

    static func text(_ instant: UnixTime) -> String { InternetTime.text(milliseconds: instant.milliseconds) }

    private func storing<Result>(
        _ operation: () async throws(StoreError) -> Result
    ) async throws(StartError) -> Result {
        do throws(StoreError) { return try await operation() } catch { throw StartError(error, exit: .unavailable) }
    }
}

extension APIKeyRecord {
    func state(at now: UnixTime) -> String {
        if revokedAt != nil { return "revoked" }
        return expiresAt.map { now >= $0 } ?? false ? "expired" : "active"
    }

    /// The id, the subject, the state, the creation, the end and the last use, with tabs in between.
    func line(at now: UnixTime) -> String {
        func text(_ instant: UnixTime?) -> String { instant.map(KeyAdministration.text) ?? "-" }
        let columns = [
            id, TerminalText.escaped(subject), state(at: now), text(createdAt), text(revokedAt ?? expiresAt),
            text(lastUsedAt),
        ]
        return columns.joined(separator: "\t")
    }

    /// - Parameter key: the new key.
    func json(at now: UnixTime, key: String? = nil) -> JSONObject {
        var object: JSONObject = ["id": .string(id)]
        if let key { object["key"] = .string(key) }
        object["subject"] = .string(subject)
        object["account"] = .bool(isAccount)
        object["state"] = .string(state(at: now))
        object["claims"] = .object(claims)
        object["scopes"] = .array(scopes.map { .string($0) })
        let times = [
            ("created_at", createdAt), ("rotated_at", rotatedAt), ("expires_at", expiresAt), ("revoked_at", revokedAt),
            ("last_used_at", lastUsedAt), ("previous_until", previous?.endsAt),
        ]
        for (name, time) in times {
            if let time { object[name] = .integer(time.seconds) }
        }
        return object
    }
}
