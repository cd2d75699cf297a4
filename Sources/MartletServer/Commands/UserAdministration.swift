internal import MartletAccounts
internal import MartletCore
internal import MartletProvider
internal import MartletSession
internal import MartletSignIn

/// What `martlet user` does to the password users of an account store.
struct UserAdministration {
    /// The words of the command.
    enum Action: String, CaseIterable {
        case add, passwd, disable, enable, list

        /// Whether the user's sessions end with it.
        var endsSessions: Bool { self == .passwd || self == .disable }
    }

    let accounts: any AccountStoring
    /// Whose rules hold for names and passwords.
    let maker: any UserMaking
    /// The maker's name in `providers:`.
    let provider: String
    let clock: Clock
    /// The sessions of running gateways; `nil` where they are not shared with this process.
    let sessions: (any SessionStoring)?
    /// Keeps logins that are on their way from making new ones; there where the sessions are.
    var fence: LoginFence? = nil
    /// Has running gateways forget what they believe of a subject's credentials.
    var forgetVerdicts: (_ subject: String) async -> Void = { _ in }

    /// Does it.
    /// - Parameters:
    ///   - name: whom it is about; empty for `list`.
    ///   - password: gets a new password; called only when one is needed and all else is well.
    /// - Returns: what to say, line by line.
    func perform(
        _ action: Action, name: String, password: () throws(StartError) -> Secret
    ) async throws(StartError) -> [String] {
        if action == .list { return try await list() }
        guard let key = maker.canonicalName(name) else {
            throw StartError(code: "user.bad_name", message: "no user can be called so", exit: .usage)
        }
        let isKnown = try await isKnown(key)
        guard isKnown == (action != .add) else {
            throw StartError(
                code: isKnown ? "user.duplicate" : "user.unknown",
                message: isKnown ? "there is a user '\(key)' already" : "there is no user '\(key)'", exit: .usage)
        }
        switch action {
        case .list: return []
        case .add:
            let record = try await record(name, try password())
            try await asking { () async throws(AccountError) in
                try await accounts.addUser(record, at: clock.unixTime)
            }
            return ["user '\(key)' is added"]
        case .passwd:
            let record = try await record(name, try password())
            try await asking { () async throws(AccountError) in try await accounts.setHash(of: key, to: record.hash) }
            return ["user '\(key)' has a new password"] + (try await endSessions(of: key))
        case .disable, .enable:
            let isDisabled = action == .disable
            try await asking { () async throws(AccountError) in try await accounts.setDisabled(key, isDisabled) }
            return ["user '\(key)' is \(action)d"] + (isDisabled ? try await endSessions(of: key) : [])
        }
    }

    private func list() async throws(StartError) -> [String] {
        let users = try await asking { () async throws(AccountError) in try await accounts.users() }
        return users.map { "\(UserAdministration.printable($0.name))\t\($0.isDisabled ? "disabled" : "active")" }
    }

    /// A name on one line of a terminal, whatever somebody wrote into the database.
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
                    code: error.code, message: "provider '\(provider)' refuses the name or the password", exit: .usage)
            case .notFound:
                throw StartError(
                    code: error.code, message: "provider '\(provider)' does not keep its users under accounts:",
                    exit: .configuration)
            case .unavailable:
                throw StartError(code: error.code, message: "the password could not be hashed", exit: .internalFault)
            }
        }
    }

    /// Ends every session of the account that the user signs in to.
    private func endSessions(of key: String) async throws(StartError) -> [String] {
        guard let sessions else {
            return ["note: sessions are not in a shared store; those of a running gateway go on until they end"]
        }
        let identity = AccountIdentity(provider: provider, subjects: [key])
        let account = try await asking { () async throws(AccountError) in try await accounts.find(identity) }
        // Who has never signed in has neither account nor session.
        guard let account else { return [] }
        func failure(_ code: ErrorCode) -> StartError {
            StartError(
                code: code, message: "the user is changed, but the sessions could not be ended: do it again",
                exit: .unavailable)
        }
        // A login may have found the old password right and not have made its session yet.
        do throws(StoreError) {
            try await fence?.mark(account.subject, provider: provider)
        } catch {
            throw failure(error.code)
        }
        await forgetVerdicts(account.subject)
        do throws(SessionError) {
            try await sessions.endAll(subject: account.subject, provider: nil, except: nil)
        } catch {
            throw failure(error.code)
        }
        return ["their sessions have ended"]
    }

    private func asking<Result>(
        _ question: () async throws(AccountError) -> Result
    ) async throws(StartError) -> Result {
        do throws(AccountError) {
            return try await question()
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
