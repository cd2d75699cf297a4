internal import MartletAccounts
internal import MartletCore
internal import MartletCrypto
internal import MartletDecisions
internal import MartletJSON
internal import MartletProvider
internal import MartletServer
internal import MartletSession
internal import MartletSignIn

/// The actions of `martlet user` on the password users of an account store.
struct UserAdministration {
    /// The actions, named as on the command line.
    enum Action: String, CaseIterable {
        case add, passwd, disable, enable, delete, verify, show, unlock, list

        var endsSessions: Bool { self == .passwd || self == .disable || self == .delete }
        var takesName: Bool { self != .list }
        /// How it is called in the past.
        fileprivate var done: String {
            switch self {
            case .add, .unlock: "\(rawValue)ed"
            case .passwd: "changed"
            case .disable, .enable, .delete: "\(rawValue)d"
            case .verify: "verified"
            case .show: "shown"
            case .list: "listed"
            }
        }
    }

    struct Outcome: Equatable {
        let lines: [String]
        let json: JSONObject
    }

    /// Has users prove by a mail that their names are their addresses.
    struct Mailing {
        let links: AccountStore
        let mails: AddressMails
        let rules: PasswordSelfService
    }

    struct Filter {
        var onlyDisabled = false
        /// The name behind which the list starts; empty for all.
        var after = ""
        /// The maximum number of users; `nil` for all.
        var limit: Int?
    }

    private static let pageSize = 500

    let accounts: AccountStore
    let maker: any UserCreating
    let provider: String
    let clock: Clock
    /// Ends sessions of running gateways; `nil` if they are not in a shared store.
    let ending: SessionEnding?
    /// Says whether a user is throttled, and ends it; `nil` if attempts are not counted in a shared store.
    var throttling: (any UserUnlocking)?
    /// How access lines name a subject; `nil` if they do not.
    var loggedSubject: @Sendable (String) -> String? = { _ in nil }
    /// `nil` if the provider sends no mails to users.
    var mailing: Mailing?
    /// Whether the operator vouches for the address of a user who is added.
    var isVerified = false

    /// Performs an action on one user.
    /// - Parameters:
    ///   - name: the user's name.
    ///   - password: reads a new password; called only if one is needed and everything else is valid.
    func perform(
        _ action: Action, name: String, password: () throws(StartError) -> Secret
    ) async throws(StartError) -> Outcome {
        guard let key = maker.canonicalName(name) else {
            throw StartError(code: "user.bad_name", message: "the name is not valid", exit: .usage)
        }
        // Names that no user has are throttled, too.
        if action == .unlock { return try await unlock(key) }
        let known = try await record(of: key)
        guard (known == nil) == (action == .add) else {
            throw StartError(
                code: known == nil ? "user.unknown" : "user.duplicate",
                message: known == nil ? "user '\(key)' does not exist" : "user '\(key)' already exists", exit: .usage)
        }
        switch action {
        case .add:
            if !isVerified, let mailing, UserRecord.isAddress(key) { return try await invite(name, key, mailing) }
            var record = try await record(name, try password())
            if isVerified, UserRecord.isAddress(key) { record = record.proved(at: clock.unixTime) }
            let new = record
            try await storing { () async throws(AccountError) in try await accounts.addUser(new, at: clock.unixTime) }
        case .verify:
            guard UserRecord.isAddress(key) else {
                throw StartError(code: "user.no_address", message: "the name is not an address", exit: .usage)
            }
            try await storing { () async throws(AccountError) in try await accounts.setProved(key, at: clock.unixTime) }
        case .passwd:
            let record = try await record(name, try password())
            try await storing { () async throws(AccountError) in try await accounts.setHash(of: key, to: record.hash) }
        case .disable, .enable:
            try await storing { () async throws(AccountError) in
                try await accounts.setDisabled(key, action == .disable)
            }
        case .delete: return try await delete(key)
        case .show: return try await show(key, known)
        case .list, .unlock: break
        }
        let what = action == .passwd ? "password of user '\(key)' changed" : "user '\(key)' \(action.done)"
        return try await outcome(action, key, what, endsSessions: action.endsSessions)
    }

    /// Has a mail sent by whose link the user chooses the password, which proves the address.
    private func invite(_ name: String, _ key: String, _ mailing: Mailing) async throws(StartError) -> Outcome {
        guard let address = EmailAddress(name) else {
            throw StartError(
                code: "user.bad_address",
                message: "no mail can be sent to this name: use an email address, or --verified for a name of yours",
                exit: .usage)
        }
        let recipient = AddressMails.Recipient(address, key: key, locale: nil, provider: provider)
        let request: PasswordLinkRequest
        if let rules = mailing.rules.registration, rules.verifiesAddress {
            request = try random { () throws(CryptoError) in
                try mailing.mails.registration(of: recipient, rules, claims: [:], from: nil)
            }
        } else if let rules = mailing.rules.reset {
            request = try random { () throws(CryptoError) in
                try mailing.mails.reset(of: recipient, rules, isInvitation: true, from: nil)
            }
            // Nothing matches this hash before the link is used.
            let record = UserRecord(name: name, key: key, hash: "*", isDisabled: false)
            try await storing { () async throws(AccountError) in
                try await accounts.addUser(record, at: clock.unixTime)
            }
        } else {
            throw StartError(
                code: "user.unverified", message: "no mail verifies addresses here: use --verified", exit: .usage)
        }
        _ = try await storing { () async throws(AccountError) in
            try await mailing.links.request(request, at: clock.unixTime)
        }
        return Outcome(
            lines: ["a mail to '\(key)' was requested; its link sets the password"],
            json: ["name": .string(key), "action": "invited"])
    }

    /// Lists users by canonical name.
    /// - Parameter print: receives each user.
    func list(_ filter: Filter, print: (UserRecord) -> Void) async throws(StartError) {
        var left = filter.limit ?? .max
        var start = maker.canonicalName(filter.after) ?? filter.after
        while left > 0 {
            let position = start
            let limit = min(left, UserAdministration.pageSize)
            let users = try await storing { () async throws(AccountError) in
                try await accounts.users(after: position, onlyDisabled: filter.onlyDisabled, limit: limit)
            }
            for user in users { print(user) }
            guard users.count == limit, let last = users.last else { return }
            left -= users.count
            start = last.key
        }
    }

    /// Removes a user, and its identity from the account, so that a later user of this name gets an account of its own.
    private func delete(_ key: String) async throws(StartError) -> Outcome {
        let identity = AccountIdentity(provider: provider, subjects: [key])
        do throws(StoreError) { _ = try await accounts.removeRecord(for: key) } catch {
            throw StartError(error, exit: .unavailable)
        }
        try await ending?.endLogins(ofUser: key, provider: provider)
        let account = try await storing { () async throws(AccountError) in try await accounts.find(identity) }
        var lines = ["user '\(key)' deleted"]
        var json: JSONObject = ["name": .string(key), "action": "deleted"]
        guard let account else { return Outcome(lines: lines, json: json) }
        json["subject"] = .string(account.subject)
        do throws(AccountError) {
            _ = try await accounts.unlink(provider: provider, from: account.subject)
        } catch {
            switch error.kind {
            case .lastIdentity:
                lines.append(
                    "note: this was the only identity of account \(TerminalText.escaped(account.subject)), which a new user "
                        + "of this name would get")
            case .notFound: break
            default: throw StartError(error)
            }
        }
        let sessions = try await endSessions(of: account.subject, reason: "admin")
        json["sessions"] = .string(sessions.state)
        return Outcome(lines: lines + sessions.lines, json: json)
    }

    private func show(_ key: String, _ record: UserRecord?) async throws(StartError) -> Outcome {
        guard let record else { return Outcome(lines: [], json: [:]) }
        let identity = AccountIdentity(provider: provider, subjects: [key])
        let account = try await storing { () async throws(AccountError) in try await accounts.find(identity) }
        var json = record.json
        if let account { json["subject"] = .string(account.subject) }
        let subject = account.map { "account \(TerminalText.escaped($0.subject))" } ?? "no account yet"
        var lines = ["\(record.line)\t\(subject)"]
        if let name = loggedSubject(account?.subject ?? "\(provider):\(key)") {
            json["log_subject"] = .string(name)
            lines.append("in access lines: subject \(TerminalText.escaped(name))")
        }
        guard let throttling else { return Outcome(lines: lines, json: json) }
        if let name = throttling.loggedName(of: key) {
            json["log_user"] = .string(name)
            lines.append("in warnings of throttling: user \(name)")
        }
        do throws(AuthenticationError) {
            let found = try await throttling.throttling(of: key)
            json["lock"] = found.map { $0.json(at: clock.unixTime) } ?? .null
            lines.append(found.map { "locked: \($0.text(at: clock.unixTime))" } ?? "not locked")
        } catch {
            lines.append("whether the user is locked is not known: the store is unavailable")
        }
        return Outcome(lines: lines, json: json)
    }

    private func unlock(_ key: String) async throws(StartError) -> Outcome {
        guard let throttling else {
            throw StartError(
                code: "user.store_not_shared",
                message: "with the store memory: attempts are counted in the memory of the running gateway",
                exit: .configuration)
        }
        let found: UserThrottling?
        do throws(AuthenticationError) {
            found = try await throttling.throttling(of: key)
            try await throttling.unlock(key)
        } catch {
            throw StartError(
                code: error.code, message: "the store is unavailable; the user may still be throttled",
                exit: .unavailable)
        }
        let ended = found.map { $0.text(at: clock.unixTime) } ?? "no login was rejected"
        var json: JSONObject = ["name": .string(key), "action": "unlocked"]
        json["lock"] = found.map { $0.json(at: clock.unixTime) } ?? .null
        return Outcome(lines: ["user '\(key)' unlocked: \(ended)"], json: json)
    }

    private func outcome(
        _ action: Action, _ key: String, _ line: String, endsSessions: Bool
    ) async throws(StartError) -> Outcome {
        var json: JSONObject = ["name": .string(key), "action": .string(action.done)]
        guard endsSessions else { return Outcome(lines: [line], json: json) }
        let identity = AccountIdentity(provider: provider, subjects: [key])
        guard ending != nil else {
            json["sessions"] = "not_shared"
            return Outcome(lines: [line, SessionEnding.unshared], json: json)
        }
        // Also without an account: the first login may be in progress.
        try await ending?.endLogins(ofUser: key, provider: provider)
        let account = try await storing { () async throws(AccountError) in try await accounts.find(identity) }
        // A user who has never signed in has neither an account nor sessions.
        guard let account else { return Outcome(lines: [line], json: json) }
        let reason = action == .passwd ? "password_changed" : "disabled"
        let sessions = try await endSessions(of: account.subject, reason: reason)
        json["sessions"] = .string(sessions.state)
        return Outcome(lines: [line] + sessions.lines, json: json)
    }

    private func endSessions(
        of subject: String, reason: String
    ) async throws(StartError) -> (state: String, lines: [String]) {
        guard let ending else { return ("not_shared", [SessionEnding.unshared]) }
        try await ending.endAll(of: subject, reason: reason)
        return ("ended", ["all sessions of the user ended"])
    }

    private func record(of key: String) async throws(StartError) -> UserRecord? {
        do throws(StoreError) { return try await accounts.record(for: key) } catch {
            throw StartError(error, exit: .unavailable)
        }
    }

    private func record(_ name: String, _ password: Secret) async throws(StartError) -> UserRecord {
        do throws(AuthenticationError) {
            return try await maker.makeRecord(name: name, password: password)
        } catch {
            switch error.disposition {
            case .malformed, .rejected, .denied, .throttled:
                let detail = error.bodyErrors.first.map { ": \($0.detail)" } ?? ""
                throw StartError(
                    code: error.code, message: "provider '\(provider)' rejected the name or the password\(detail)",
                    exit: .usage)
            case .notFound:
                throw StartError(
                    code: error.code, message: "provider '\(provider)' does not store its users in accounts:",
                    exit: .configuration)
            case .unavailable:
                throw StartError(code: error.code, message: "the password could not be hashed", exit: .internalFault)
            }
        }
    }

    private func random<Value>(_ body: () throws(CryptoError) -> Value) throws(StartError) -> Value {
        do throws(CryptoError) { return try body() } catch { throw StartError(error, exit: .internalFault) }
    }

    private func storing<Result>(
        _ operation: () async throws(AccountError) -> Result
    ) async throws(StartError) -> Result {
        do throws(AccountError) { return try await operation() } catch { throw StartError(error) }
    }
}

extension UserThrottling {
    fileprivate func text(at now: UnixTime) -> String {
        var parts: [String] = []
        if let remaining {
            let end = now.advanced(bySeconds: remaining.wholeSeconds)
            parts.append("too many failed logins, from networks unknown for the user until \(Self.text(end))")
        }
        if knownNetworks > 0 {
            parts.append("too many failed logins from \(knownNetworks) known network\(knownNetworks == 1 ? "" : "s")")
        }
        return parts.joined(separator: "; ")
    }

    private static func text(_ time: UnixTime) -> String { InternetTime.text(milliseconds: time.milliseconds) }

    fileprivate func json(at now: UnixTime) -> JSONValue {
        [
            "until": remaining.map { .string(Self.text(now.advanced(bySeconds: $0.wholeSeconds))) } ?? .null,
            "known_networks": .integer(Int64(knownNetworks)),
        ]
    }
}

extension UserRecord {
    private var state: String { isDisabled ? "disabled" : "active" }

    /// The name, a tab, the state; a name may contain control characters.
    var line: String {
        let name = name.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }
        return "\(String(String.UnicodeScalarView(name)))\t\(state)"
    }

    var json: JSONObject {
        var json: JSONObject = ["name": .string(key), "display_name": .string(name), "state": .string(state)]
        if UserRecord.isAddress(key) { json["verified"] = .bool(provedAt != nil) }
        return json
    }

    /// The same user with an address that is known to be the user's.
    fileprivate func proved(at now: UnixTime) -> UserRecord {
        UserRecord(name: name, key: key, hash: hash, isDisabled: isDisabled, claims: claims, provedAt: now)
    }
}
