internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// The rules for new passwords.
extension PasswordProvider {
    /// Checks and normalizes a password to be set.
    /// - Parameter member: the member of the body that has it, for errors.
    func newPassword(
        _ new: Secret, member: String, for client: ClientNetwork?, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Secret {
        let password = try wellFormed(new, member: member)
        guard let denied else { return password }
        // On a thread of the pool, because reading a file blocks.
        let result = try await runInPool(for: client, until: deadline) {
            () throws(CryptoError) in
            Result { () throws(DenyListError) in try denied.contains(password) }
        }
        switch result {
        case .success(false): return password
        case .success(true): throw Self.breached(member)
        case .failure(let error):
            context.logger.error("deny_file not usable", ("reason", "\(error)"))
            throw .unavailable("password.deny_file_failed", cause: error)
        }
    }

    /// Checks a password's form and normalizes it.
    private func wellFormed(_ new: Secret, member: String) throws(AuthenticationError) -> Secret {
        let text: PasswordText
        do { text = try PasswordText(new) } catch {
            switch error {
            case .empty: throw tooShort(member)
            case .tooLong: throw .malformed("password.too_long", BodyError(member, .tooLong))
            case .notText, .controlCharacter: throw Self.badCharacters(member)
            }
        }
        guard text.codePoints >= minimumLength else { throw tooShort(member) }
        guard text.isAssigned else { throw Self.badCharacters(member) }
        return text.normalized
    }

    private func tooShort(_ member: String) -> AuthenticationError {
        let detail = "`\(member)` must have at least \(minimumLength) characters."
        return .malformed("password.too_short", BodyError(member, .tooShort, detail: detail))
    }

    private static func badCharacters(_ member: String) -> AuthenticationError {
        .malformed(
            "password.bad_characters",
            BodyError(member, .invalid, detail: "`\(member)` contains characters that are not allowed."))
    }

    private static func breached(_ member: String) -> AuthenticationError {
        .malformed(
            "password.breached",
            BodyError(member, .breached, detail: "`\(member)` is on a list of breached passwords."))
    }
}
