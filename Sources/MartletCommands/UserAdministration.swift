internal import MartletAccounts
internal import MartletCore
internal import MartletProvider
internal import MartletServer
internal import MartletSession
internal import MartletSignIn

/// The actions of `martlet user` on the password users of an account store.
struct UserAdministration {
    /// The actions, named as on the command line.
    enum Action: String, CaseIterable {
        case add, passwd, disable, enable, list

        /// Whether it ends the user's sessions.
        var endsSessions: Bool { self == .passwd || self == .disable }
    }

    let accounts: any AccountStoring
    /// Validates names and hashes passwords.
    let maker: any UserCreating
    /// The provider's name in `providers:`.
    let provider: String
    let clock: Clock
    /// The sessions of running gateways; `nil` if they are not in a shared store.
    let sessions: (any SessionStoring)?
    /// Prevents logins in progress from creating sessions; set together with `sessions`.
    var fence: LoginFence? = nil
    /// Has running gateways drop their cached decisions about a subject.
    var invalidateDecisions: (_ subject: String) async -> Void = { _ in }

    /// Performs an action.
    /// - Parameters:
    ///   - name: the user's name; empty for `list`.
    ///   - password: reads a new password; called only if one is needed and everything else is valid.
    /// - Returns: the lines to print.
    func perform(
        _ action: Action, name: String, password: () throws(StartError) -> Secret
    ) async throws(StartError) -> [String] {
        if action == .list { return try await list() }
        guard let key = maker.canonicalName(name) else {
            throw StartError(code: "user.bad_name", message: "the name is not valid", exit: .usage)
        }
        let isKnown = try await isKnown(key)
        guard isKnown == (action != .add) else {
            throw StartError(
                code: isKnown ? "user.duplicate" : "user.unknown",
                message: isKnown ? "user '\(key)' already exists" : "user '\(key)' does not exist", exit: .usage)
        }
        switch action {
        case .list: return []
        case .add:
            let record = try await record(name, try password())
            try await mappingErrors { () async throws(AccountError) in
                try await accounts.addUser(record, at: clock.unixTime)
            }
            return ["user '\(key)' added"]
        case .passwd:
            let record = try await record(name, try password())
            try await mappingErrors { () async throws(AccountError) in
                try await accounts.setHash(of: key, to: record.hash)
            }
            return ["password of user '\(key)' changed"] + (try await endSessions(of: key))
        case .disable, .enable:
            let isDisabled = action == .disable
            try await mappingErrors { () async throws(AccountError) in try await accounts.setDisabled(key, isDisabled) }
            return ["user '\(key)' \(action)d"] + (isDisabled ? try await endSessions(of: key) : [])
        }
    }

    private func list() async throws(StartError) -> [String] {
        let users = try await mappingErrors { () async throws(AccountError) in try await accounts.users() }
        return users.map { "\(UserAdministration.printable($0.name))\t\($0.isDisabled ? "disabled" : "active")" }
    }

    /// A name of the database with its control characters replaced.
    private static func printable(_ name: String) -> String {
        String(
            String.UnicodeScalarView(name.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }

    private func isKnown(_ key: String) async throws(StartError) -> Bool {
        do throws(StoreError) {
            return try await accounts.record(for: key) != nil
        } catch {
            throw StartError(code: error.code, message: error.message, exit: .unavailable)
        }
    }

    private func record(_ name: String, _ password: Secret) async throws(StartError) -> UserRecord {
        do throws(AuthenticationError) {
            return try await maker.makeRecord(name: name, password: password)
        } catch {
            switch error.disposition {
            case .malformed, .rejected, .denied, .throttled:
                throw StartError(
                    code: error.code, message: "provider '\(provider)' rejected the name or the password", exit: .usage)
            case .notFound:
                throw StartError(
                    code: error.code, message: "provider '\(provider)' does not store its users in accounts:",
                    exit: .configuration)
            case .unavailable:
                throw StartError(code: error.code, message: "the password could not be hashed", exit: .internalFault)
            }
        }
    }

    /// Ends every session of the user's account.
    private func endSessions(of key: String) async throws(StartError) -> [String] {
        guard let sessions else {
            return [
                "note: sessions are not in a shared store; sessions of a running gateway stay valid until they expire"
            ]
        }
        let identity = AccountIdentity(provider: provider, subjects: [key])
        let account = try await mappingErrors { () async throws(AccountError) in try await accounts.find(identity) }
        // A user who has never signed in has neither an account nor sessions.
        guard let account else { return [] }
        func failure(_ code: ErrorCode) -> StartError {
            StartError(
                code: code, message: "the user was changed, but the sessions could not be ended: try again",
                exit: .unavailable)
        }
        // A login may have verified the old password and not have created its session yet.
        do throws(StoreError) {
            try await fence?.mark(account.subject, provider: provider)
        } catch {
            throw failure(error.code)
        }
        await invalidateDecisions(account.subject)
        do throws(SessionError) {
            try await sessions.endAll(subject: account.subject, provider: nil, except: nil)
        } catch {
            throw failure(error.code)
        }
        return ["all sessions of the user ended"]
    }

    private func mappingErrors<Result>(
        _ operation: () async throws(AccountError) -> Result
    ) async throws(StartError) -> Result {
        do throws(AccountError) {
            return try await operation()
        } catch {
            let exit: ExitCode =
                switch error.kind {
                case .unavailable: .unavailable
                case .notFound, .duplicateUser: .usage
                case .identityTaken, .providerAlreadyLinked, .lastIdentity: .internalFault
                }
            throw StartError(code: error.code, message: error.message, exit: exit)
        }
    }
}
