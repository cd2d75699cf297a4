internal import MartletJSON

/// What `martlet account show` prints of an account, which a gateway or a store has described.
struct AccountPage {
    private let account: JSONObject

    init(_ account: JSONObject) { self.account = account }

    /// The account with its claims, as commands print it.
    /// - Parameters:
    ///   - account: as gateways show it.
    ///   - own: the claims of the identity of a provider.
    static func document(
        _ account: JSONObject, claims: JSONValue?, _ own: (_ provider: String) -> JSONValue?
    ) -> JSONObject {
        var document = account
        document["claims"] = claims ?? .object([:])
        document["identities"] = .array(
            (account["identities"]?.array ?? []).map { identity in
                guard var entry = identity.object else { return identity }
                entry["claims"] = entry["provider"]?.string.flatMap(own)
                return .object(entry)
            })
        if let deletion = account["deletion"]?.object {
            document["deletion_at"] = deletion["due_at"]
            document["deletion_reason"] = deletion["reason"]
            if let deleted = deletion["deleted_at"], deleted != .null { document["deleted_at"] = deleted }
        }
        return document
    }

    /// Prints the account, its claims, and one line for each identity: two tables on a terminal.
    func show(_ terminal: Terminal, print: @escaping (String) -> Void) {
        var columns = [
            ("SUBJECT", account["subject"]?.string ?? ""), ("STATE", account["state"]?.string ?? ""),
            ("CREATED", AdminRequests.time(account["created_at"]) ?? "-"),
        ]
        if let time = AdminRequests.time(account["disabled_at"]) { columns.append(("DISABLED", "disabled \(time)")) }
        if let time = AdminRequests.time(account["deletion_at"]) { columns.append(("DELETION", "deletion \(time)")) }
        columns.append(("SESSIONS", "sessions \(account["sessions"]?.int64.map { "\($0)" } ?? "unknown")"))
        var table = TablePrinter(columns.map(\.0), terminal: terminal, print: print)
        table.add(columns.map { TerminalText.escaped($0.1) }.joined(separator: "\t"))
        table.finish()
        for name in ["claims", "profile"] {
            if let text = Self.text(account[name]) { print("\(name)\t\(text)") }
        }
        let identities = (account["identities"]?.array ?? []).compactMap(\.object)
        guard !identities.isEmpty else { return }
        if terminal.isTerminal { print("") }
        var identityTable = TablePrinter(
            "PROVIDER", "LINKED", "LAST LOGIN", "SUBJECT", "CREDENTIAL", terminal: terminal, print: print)
        for identity in identities { identityTable.add(Self.columns(of: identity).joined(separator: "\t")) }
        identityTable.finish()
    }

    private static func columns(of identity: JSONObject) -> [String] {
        var columns = [
            identity["provider"]?.string ?? "", "linked \(AdminRequests.time(identity["linked_at"]) ?? "none")",
            "last login \(AdminRequests.time(identity["last_login_at"]) ?? "none")",
            identity["subject"]?.string ?? "", "credential \(identity["credential_state"]?.string ?? "unknown")",
        ]
        if let lock = identity["lock"]?.object {
            columns.append("throttled \(lock["seconds"]?.int64.map { "\($0) s" } ?? "known networks")")
        }
        if let claims = text(identity["claims"]) { columns.append("claims \(claims)") }
        return columns.map(TerminalText.escaped)
    }

    /// Claims as JSON; `nil` without any.
    private static func text(_ claims: JSONValue?) -> String? {
        guard let claims = claims?.object, !claims.members.isEmpty else { return nil }
        return TerminalText.escaped(String(decoding: JSON.write(claims), as: UTF8.self))
    }
}
