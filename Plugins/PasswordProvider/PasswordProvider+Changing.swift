public import MartletCore
internal import MartletCrypto
public import MartletProvider

extension PasswordProvider: PasswordChanging {
    /// How often a change begins anew because the hash was replaced meanwhile, as a login does with an old one.
    private static let changeAttempts = 3

    /// Changes a password; the current one is checked and throttled as at a login.
    public func changePassword(
        of subject: String, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) {
        guard case .accounts(let users) = source else { throw AuthenticationError("password.users_in_file", .notFound) }
        let password = try newPassword(new)
        let name = Array(subject.utf8)
        guard try await find(name, key: subject) != nil else { throw Self.noRecord }
        let attempt = try await throttle.admit(name, from: context.client)
        do throws(AuthenticationError) {
            try await replacePassword(of: name, key: subject, from: current, to: password, users, attempt, context)
        } catch {
            if error.disposition == .unavailable { await throttle.withdrew(attempt) }
            throw error
        }
        flights.closeDoors()
        await throttle.succeeded(attempt, at: context.now)
    }

    /// Checks the current password and puts the new one's hash in place of exactly the old one's.
    private func replacePassword(
        of name: [UInt8], key: String, from current: Secret, to new: Secret, _ users: any UserRecordStoring,
        _ attempt: Throttle.Attempt, _ context: AuthenticationContext
    ) async throws(AuthenticationError) {
        for _ in 0..<Self.changeAttempts {
            guard let user = try await find(name, key: key), let stored = user.stored else { throw Self.noRecord }
            if let refusal = try await judge(user, current, in: context).refusal {
                await throttle.failed(attempt)
                throw .rejected(refusal)
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
        do {
            return try await users.replaceHash(of: subject, from: stored, to: hash.encoded)
        } catch {
            throw .unavailable("password.users_unavailable", cause: error)
        }
    }

    /// A password as it may be set.
    private func newPassword(_ password: Secret) throws(AuthenticationError) -> Secret {
        let text: PasswordText
        do {
            text = try PasswordText(password)
        } catch {
            switch error {
            case .empty: throw tooShort
            case .tooLong: throw .malformed("password.too_long", BodyError("new_password", .tooLong))
            case .notText, .controlCharacter: throw Self.badCharacters
            }
        }
        guard text.codePoints >= minimumLength else { throw tooShort }
        guard text.isAssigned else { throw Self.badCharacters }
        return text.normalised
    }

    private var tooShort: AuthenticationError {
        let detail = "`new_password` must have \(minimumLength) characters at least."
        return .malformed("password.too_short", BodyError("new_password", .tooShort, detail: detail))
    }

    private static let badCharacters = AuthenticationError.malformed(
        "password.bad_characters",
        BodyError("new_password", .invalid, detail: "`new_password` has characters that no password may have."))

    private func hash(
        _ password: Secret, for client: ClientNetwork?, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> PasswordHash {
        try await inPool(for: client, until: deadline) { [parameters] () throws(CryptoError) in
            try PasswordHash.make(password, with: parameters)
        }
    }
}

extension PasswordProvider: Unlinking {
    /// Deletes the user's record; a file of users is the operator's and stays as it is.
    public func unlink(_ subject: String) async throws(AuthenticationError) {
        guard case .accounts(let users) = source else { return }
        do {
            _ = try await users.removeRecord(for: subject)
        } catch {
            throw .unavailable("password.users_unavailable", cause: error)
        }
        flights.closeDoors()
    }
}

extension PasswordProvider: UserMaking {
    /// How long the command line waits for a hash.
    private static let makingTime = Duration.seconds(30)

    /// Not the users of a file.
    public var keepsRecords: Bool {
        if case .accounts = source { true } else { false }
    }

    /// Makes a record whose password is normalised and hashed with the configured parameters.
    public func makeRecord(name: String, password: Secret) async throws(AuthenticationError) -> UserRecord {
        guard case .accounts = source else { throw AuthenticationError("password.users_in_file", .notFound) }
        guard let key = canonicalName(name) else { throw .malformed("password.bad_name") }
        let password = try newPassword(password)
        let hash = try await hash(password, for: nil, until: context.clock.monotonicTime + Self.makingTime)
        return UserRecord(name: name, key: key, hash: hash.encoded, isDisabled: false)
    }

    /// The name without case and width; `nil` for one that could be taken for another.
    public func canonicalName(_ name: String) -> String? { UserName.canonical(name) }
}
