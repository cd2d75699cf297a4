public import MartletCore
internal import MartletCrypto
public import MartletProvider

extension PasswordProvider: PasswordChanging {
    /// How often a change is attempted; it starts over if the hash was replaced meanwhile, as by a login that rehashes.
    private static let changeAttempts = 3

    public var minimumPasswordLength: Int { minimumLength }

    /// Changes a password; the current one is checked and throttled as at a login.
    public func changePassword(
        of subject: String, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) {
        guard case .accounts(let users) = source else { throw AuthenticationError("password.users_in_file", .notFound) }
        let password = try await newPassword(new, member: "new_password", for: context.client, until: context.deadline)
        let name = Array(subject.utf8)
        guard try await find(name, key: subject) != nil else { throw Self.noRecord }
        let attempt = try await throttle.admit(name, from: context.client)
        do throws(AuthenticationError) {
            try await replacePassword(of: name, key: subject, from: current, to: password, users, attempt, context)
        } catch {
            if error.disposition == .unavailable { await throttle.withdraw(attempt) }
            throw error
        }
        singleFlight.startNewEpoch()
        await throttle.recordSuccess(attempt, at: context.now)
    }

    /// Checks the current password and replaces its hash, only if that is unchanged, by the new one's.
    private func replacePassword(
        of name: [UInt8], key: String, from current: Secret, to new: Secret, _ users: any UserRecordStoring,
        _ attempt: Throttle.Attempt, _ context: AuthenticationContext
    ) async throws(AuthenticationError) {
        for _ in 0..<Self.changeAttempts {
            guard let user = try await find(name, key: key), let stored = user.stored else { throw Self.noRecord }
            if let failure = try await verify(user, current, in: context).failure {
                await throttle.recordFailure(attempt)
                throw .rejected(failure)
            }
            let hash = try await hash(new, for: context.client, until: context.deadline)
            if try await replace(stored, by: hash, of: user.subject, in: users) { return }
        }
        throw .unavailable("password.changed_meanwhile", retryAfter: .seconds(1))
    }

    private static var noRecord: AuthenticationError { AuthenticationError("password.no_record", .notFound) }

    private func replace(
        _ stored: String, by hash: PasswordHash, of subject: String, in users: any UserRecordStoring
    ) async throws(AuthenticationError) -> Bool {
        try await Self.result(
            "password.users_unavailable", await users.replaceHash(of: subject, from: stored, to: hash.encoded))
    }

    /// Hashes a password that was checked.
    func hash(
        _ password: Secret, for client: ClientNetwork?, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> PasswordHash {
        try await runInPool(for: client, until: deadline) { [parameters] () throws(CryptoError) in
            try PasswordHash.make(password, with: parameters)
        }
    }
}

extension PasswordProvider: Unlinking {
    /// Deletes the user's record; users in a file belong to the operator and are not deleted.
    public func unlink(_ subject: String) async throws(AuthenticationError) {
        guard case .accounts(let users) = source else { return }
        _ = try await Self.result("password.users_unavailable", await users.removeRecord(for: subject))
        singleFlight.startNewEpoch()
    }
}

extension PasswordProvider: UserUnlocking {
    /// Ends the bans of a user, and forgets the attempts.
    public func unlock(_ name: String) async throws(AuthenticationError) {
        try await Self.result("password.store_unavailable", await throttle.unlock(Array(name.utf8)))
    }

    /// The bans of a user.
    public func throttling(of subject: String) async throws(AuthenticationError) -> UserThrottling? {
        try await Self.result("password.store_unavailable", await throttle.throttling(of: Array(subject.utf8)))
    }

    /// The user of the warning of a ban.
    public func loggedName(of subject: String) -> String? { Throttle.loggedName(of: Array(subject.utf8)) }
}

extension PasswordProvider: UserCreating {
    /// The timeout for hashing when the command line creates a user.
    private static let hashTimeout = Duration.seconds(30)

    /// Users in a file have no records.
    public var storesRecords: Bool { if case .accounts = source { true } else { false } }

    /// Creates a record whose password is normalized and hashed with the configured parameters.
    public func makeRecord(name: String, password: Secret) async throws(AuthenticationError) -> UserRecord {
        guard case .accounts = source else { throw AuthenticationError("password.users_in_file", .notFound) }
        guard let key = canonicalName(name) else { throw .malformed("password.bad_name") }
        let deadline = context.clock.monotonicTime + Self.hashTimeout
        let password = try await newPassword(password, member: "new_password", for: nil, until: deadline)
        let hash = try await hash(password, for: nil, until: deadline)
        return UserRecord(name: name, key: key, hash: hash.encoded, isDisabled: false)
    }

    /// The name without case and width; `nil` for one that could be confused with another.
    public func canonicalName(_ name: String) -> String? { UserName.canonical(name) }
}
