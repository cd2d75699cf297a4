package import MartletAccounts
package import MartletCore
internal import MartletJSON
package import MartletProvider

/// Resolves the subject of a direct bearer token: that of the identity's account, the same as in its sessions.
package struct AccountSubjects: SubjectResolving {
    private let accounts: (any AccountStoring)?
    private let clock: Clock

    /// - Parameter accounts: `nil` without `accounts:`; subjects are then `<provider>:<subject>`.
    package init(accounts: (any AccountStoring)?, clock: Clock) {
        self.accounts = accounts
        self.clock = clock
    }

    /// The subject of the identity's account, which is created if there is none.
    ///
    /// No claims are stored from such a token: those that an app sends only once come with a login.
    package func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String {
        guard let accounts else { return Principal(identity: identity, provider: provider, sessionID: nil).subject }
        do throws(AccountError) {
            let known = AccountIdentity(provider: provider, subjects: [identity.providerSubject])
            return try await accounts.signIn(known, keeping: [:], at: clock.unixTime).subject
        } catch {
            throw .unavailable(error.code, cause: error)
        }
    }

    /// The subject of the identity's account; `nil` if there is none.
    package func knownSubject(
        of identity: Identity, provider: String
    ) async throws(AuthenticationError) -> String? {
        guard let accounts else { return Principal(identity: identity, provider: provider, sessionID: nil).subject }
        do throws(AccountError) {
            let known = AccountIdentity(provider: provider, subjects: [identity.providerSubject])
            return try await accounts.find(known)?.subject
        } catch {
            throw .unavailable(error.code, cause: error)
        }
    }
}
