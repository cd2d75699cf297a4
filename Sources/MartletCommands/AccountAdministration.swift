internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// The actions of `martlet account` on an account store.
struct AccountAdministration {
    /// Accounts in one query.
    private static let pageSize = 500

    let accounts: AccountStore
    let clock: Clock
    /// Makes running gateways apply changed claims; `nil` if their sessions are not in a shared store.
    let publication: ClaimPublication?
    /// How accounts are deleted, and jobs are done; `nil` for actions that only read.
    var deletion: AccountDeletion?

    /// Lists accounts by subject.
    /// - Parameters:
    ///   - start: the subject behind which the list starts; empty for all.
    ///   - limit: the maximum number of accounts; `nil` for all.
    ///   - print: receives each account.
    func list(
        _ filter: AccountFilter, from start: String, limit: Int?, print: (AccountRecord) -> Void
    ) async throws(StartError) {
        var left = limit ?? .max
        var start: String? = start
        while let position = start, left > 0 {
            let page: AccountListPage
            do throws(AccountError) {
                page = try await accounts.accounts(
                    from: position, filter, limit: min(left, AccountAdministration.pageSize))
            } catch {
                throw StartError(error)
            }
            for account in page.accounts { print(account) }
            left -= page.accounts.count
            start = page.next
        }
    }

    /// An account with its identities.
    func show(_ subject: String) async throws(StartError) -> AccountDetails {
        do throws(AccountError) {
            guard let account = try await accounts.account(subject) else {
                throw AccountError(.accountsUnknownAccount, .notFound, "account not found")
            }
            return AccountDetails(
                account: account, identities: try await accounts.linkedIdentities(of: subject),
                claims: try await accounts.claims(of: subject).claims)
        } catch {
            throw StartError(error)
        }
    }

    /// Changes the claims of an account, and makes running gateways apply them; repeating it publishes them again.
    ///
    /// Nothing is changed while gateways cannot be notified. Should they become unavailable in between, the change is
    /// made, and the account's next login or refresh publishes it.
    func change(_ subject: String, by patch: ClaimPatch) async throws(StartError) -> AccountDetails {
        guard let publication else {
            throw StartError(
                code: "account.store_not_shared",
                message: "with the store memory: sessions are in the memory of the running gateway, which changes "
                    + "claims at its admin listener: PATCH /subjects/\(TerminalText.escaped(subject))/claims",
                exit: .configuration)
        }
        if let code = publication.outage() {
            throw StartError(
                code: code, message: "the store is unavailable; nothing was changed", exit: .unavailable)
        }
        do throws(AccountError) {
            try await accounts.changeClaims(of: subject, by: patch)
        } catch {
            throw StartError(error)
        }
        do throws(ClaimPublisher.PublicationError) {
            try await publication.publish(subject)
        } catch {
            throw StartError(
                code: error.code, message: "the claims were changed, but running gateways were not notified: try again",
                exit: .unavailable)
        }
        return try await show(subject)
    }

    /// Disables an account, or enables it. Its sessions do not end: they are accepted again when it is enabled.
    /// - Returns: the lines to print.
    func setDisabled(_ subject: String, _ isDisabled: Bool) async throws(StartError) -> [String] {
        let jobs: [AccountJob]
        do throws(AccountError) {
            // Whatever is left to do is due for gateways immediately.
            jobs = try await accounts.setDisabled(
                account: subject, at: isDisabled ? clock.unixTime : nil, headStart: 0)
        } catch {
            throw StartError(error)
        }
        let done = "account \(TerminalText.escaped(subject)) \(isDisabled ? "disabled" : "enabled")"
        guard let runner = deletion?.runner, await runner.perform(jobs) else {
            let verb = isDisabled ? "rejected" : "accepted"
            return [done, "its sessions are \(verb) as soon as a running gateway does so"]
        }
        return [done]
    }
}

/// Deletes accounts, as `DELETE /auth/account` does.
struct AccountDeletion {
    /// The reason of events.
    private static let reason = "operator"

    let life: IdentityLifeStore
    let policy: DeletionPolicy
    let clock: Clock
    /// Does jobs at running gateways; `nil` if their sessions are not in a shared store.
    let runner: JobRunner?

    /// Requests the deletion of an account; running gateways do what it takes, or the next one that starts.
    /// - Returns: the lines to print.
    /// - Throws: exit code 64 without such an account, 69 during an outage.
    func request(_ subject: String) async throws(StartError) -> [String] {
        let jobs: [AccountJob]
        do throws(AccountError) {
            // Whatever is left to do is due for gateways immediately.
            jobs = try await life.requestDeletion(
                of: subject, reason: Self.reason, policy, at: clock.unixMilliseconds, headStart: 0)
        } catch {
            throw StartError(error)
        }
        let what = "account \(TerminalText.escaped(subject)) is being deleted"
        let later = "its sessions end as soon as a running gateway does so"
        guard !jobs.isEmpty else { return [what] }
        // Only gateways have providers, which a deletion needs.
        guard let runner, await runner.perform(jobs.filter { $0.kind == .endSessions }) else { return [what, later] }
        return [what, "all sessions of the account ended"]
    }
}

/// An account with its identities and their claims.
struct AccountDetails {
    let account: AccountRecord
    let identities: [LinkedIdentity]
    let claims: AccountClaims

    /// The account, its claims, and one line for each identity.
    var lines: [String] {
        var lines = [account.line]
        if !claims.account.isEmpty { lines.append("claims\t\(Self.text(claims.account))") }
        if !account.profile.isEmpty { lines.append("profile\t\(Self.text(account.profile))") }
        for identity in identities {
            let own = claims.identities[identity.provider].map { $0.isEmpty ? "" : "\tclaims \(Self.text($0))" }
            lines.append(identity.line + (own ?? ""))
        }
        return lines
    }

    var json: JSONObject {
        var object = account.json
        object["identities"] = .array(
            identities.map { identity in
                var entry = identity.json
                if let own = claims.identities[identity.provider] { entry["claims"] = .object(own) }
                return .object(entry)
            })
        return object
    }

    private static func text(_ claims: JSONObject) -> String {
        TerminalText.escaped(String(decoding: JSON.write(claims), as: UTF8.self))
    }
}

/// The forms in which accounts are printed.
extension AccountRecord {
    private var state: String {
        if let deletion { return deletion.deletedAt == nil ? "being_deleted" : "deleted" }
        return disabledAt == nil ? "active" : "disabled"
    }

    /// `SUBJECT`, a tab, the state, a tab, when it was created.
    var line: String {
        let created = InternetTime.text(milliseconds: createdAt.milliseconds)
        return TerminalText.escaped(subject) + "\t\(state)\t\(created)"
    }

    /// The members of the account.
    var json: JSONObject {
        var object: JSONObject = [
            "subject": .string(subject), "state": .string(state), "created_at": .integer(createdAt.seconds),
            "stored_claims": .object(storedClaims), "claims": .object(claims), "profile": .object(profile),
        ]
        if let disabledAt { object["disabled_at"] = .integer(disabledAt.seconds) }
        if let deletion {
            object["deletion_at"] = .integer(deletion.dueAt.seconds)
            object["deletion_reason"] = .string(deletion.reason)
            object["deleted_at"] = deletion.deletedAt.map { .integer($0.seconds) }
        }
        return object
    }
}

extension LinkedIdentity {
    /// `PROVIDER linked TIME, last login TIME`.
    var line: String {
        let linked = InternetTime.text(milliseconds: linkedAt.milliseconds)
        let last = lastLoginAt.map { InternetTime.text(milliseconds: $0.milliseconds) } ?? "none"
        return "\(TerminalText.escaped(provider))\tlinked \(linked)\tlast login \(last)"
    }

    /// The members of the identity.
    var json: JSONObject {
        var object: JSONObject = ["provider": .string(provider), "linked_at": .integer(linkedAt.seconds)]
        if let lastLoginAt { object["last_login_at"] = .integer(lastLoginAt.seconds) }
        return object
    }
}
