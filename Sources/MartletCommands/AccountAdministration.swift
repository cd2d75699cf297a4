internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// The actions of `martlet account` on an account store.
struct AccountAdministration {
    private static let pageSize = 500

    let accounts: AccountStore
    let clock: Clock
    /// Changes claims; `nil` if the sessions of running gateways are not in a shared store.
    let claims: OperatorClaims?
    /// Does jobs at running gateways; `nil` in the same case.
    let runner: JobRunner?
    let deletion: DeletionPolicy

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
                page = try await accounts.accounts(from: position, filter, limit: min(left, Self.pageSize))
            } catch {
                throw StartError(error)
            }
            for account in page.accounts { print(account) }
            left -= page.accounts.count
            start = page.next
        }
    }

    func show(_ subject: String) async throws(StartError) -> JSONObject {
        do throws(AccountError) {
            guard let report = try await AccountReport(of: subject, in: accounts) else {
                throw AccountError(.accountsUnknownAccount, .notFound, "account not found")
            }
            let claims = try await accounts.claims(of: subject).claims
            return AccountPage.document(report.document, claims: .object(claims.account)) { provider in
                claims.identities[provider].map { .object($0) }
            }
        } catch {
            throw StartError(error)
        }
    }

    /// Changes the claims of an account, and makes running gateways apply them.
    func change(_ subject: String, by patch: ClaimPatch) async throws(StartError) -> JSONObject {
        guard let claims else {
            throw StartError(
                code: "account.store_not_shared",
                message: "with the store memory: sessions are in the memory of the running gateway, which changes "
                    + "claims at its admin listener: PATCH /subjects/\(TerminalText.escaped(subject))/claims",
                exit: .configuration)
        }
        do throws(AccountError) { try await claims.change(subject, by: patch) } catch { throw StartError(error) }
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
        guard let runner, await runner.perform(jobs) else {
            let verb = isDisabled ? "rejected" : "accepted"
            return [done, "its sessions are \(verb) as soon as a running gateway does so"]
        }
        return [done]
    }

    /// Requests the deletion of an account; running gateways do what it takes, or the next one that starts.
    /// - Returns: the lines to print.
    /// - Throws: exit code 64 without such an account, 69 during an outage.
    func delete(_ subject: String) async throws(StartError) -> [String] {
        let jobs: [AccountJob]
        do throws(AccountError) {
            // Whatever is left to do is due for gateways immediately.
            jobs = try await accounts.life.requestDeletion(
                of: subject, reason: "operator", deletion, at: clock.unixMilliseconds, headStart: 0)
        } catch {
            throw StartError(error)
        }
        let lines = Self.ended(subject)
        guard !jobs.isEmpty else { return [lines[0]] }
        // Only gateways have providers, which a deletion needs.
        guard let runner, await runner.perform(jobs.filter { $0.kind == .endSessions }) else {
            return [lines[0], "its sessions end as soon as a running gateway does so"]
        }
        return lines
    }

    /// What is printed of a deletion that has ended the sessions.
    static func ended(_ subject: String) -> [String] {
        ["account \(TerminalText.escaped(subject)) is being deleted", "all sessions of the account ended"]
    }
}

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
