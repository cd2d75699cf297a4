package import MartletAccounts
package import MartletCore
internal import MartletJSON
package import MartletProvider

/// The subject behind a direct bearer token: that of the identity's account, as a session of the identity has it.
package struct AccountSubjects: SubjectResolving {
    private let accounts: (any AccountStoring)?
    private let clock: Clock

    /// - Parameter accounts: `nil` without `accounts:`; identities then go by `<provider>:<subject>`.
    package init(accounts: (any AccountStoring)?, clock: Clock) {
        self.accounts = accounts
        self.clock = clock
    }

    /// An identity that was never seen before gets its account now.
    ///
    /// Nothing is kept from such a token: what an app sends once comes with a login.
    package func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String {
        guard let accounts else { return Principal(identity: identity, provider: provider, sessionID: nil).subject }
        do throws(AccountError) {
            let known = AccountIdentity(provider: provider, subjects: [identity.providerSubject])
            return try await accounts.signIn(known, keeping: [:], at: clock.unixTime).subject
        } catch {
            throw .unavailable(error.code, cause: error)
        }
    }

    /// The subject of the account that there is.
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
