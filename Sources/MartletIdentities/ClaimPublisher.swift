package import MartletAccounts
package import MartletCore
internal import MartletProvider
package import MartletSession

/// Makes gateways apply the claims that are stored with an account, and whether it is disabled: to its sessions, and to
/// its direct credentials.
///
/// To be called after every change of them. The account store decides what they are; what is stored with the sessions
/// is a copy, which is never replaced by an older one. A login and a refresh store it too, so that a change whose
/// publication failed is not lost.
package struct ClaimPublisher: Sendable {
    private let accounts: any AccountStoring
    private let sessions: any SessionStoring
    private let dropDecisions: @Sendable (_ subject: String, _ isDisabled: Bool) async -> Void

    /// - Parameter dropDecisions: has every loop of every instance drop its decisions about the direct credentials of a
    ///   subject whose claims have changed; those of a disabled one also end what they have admitted.
    package init(
        accounts: any AccountStoring, sessions: any SessionStoring,
        dropDecisions: @escaping @Sendable (_ subject: String, _ isDisabled: Bool) async -> Void
    ) {
        self.accounts = accounts
        self.sessions = sessions
        self.dropDecisions = dropDecisions
    }

    /// Publishes the claims of an account; returns when this instance applies them and the others have been notified.
    package func publish(_ subject: String) async throws(PublicationError) {
        let stored = try await store(subject, ifNewerThan: nil)
        await dropDecisions(subject, stored.isDisabled)
    }

    /// The same if they have not been published yet; without an effect for an account that never had claims.
    ///
    /// - Parameters:
    ///   - version: that of the claims that are stored with the sessions; `nil` if it is not known.
    ///   - isNew: whether the account is new, so that there are no decisions about it.
    package func publish(
        _ subject: String, ifNewerThan version: Int64?, isNew: Bool = false
    ) async throws(PublicationError) {
        let stored = try await store(subject, ifNewerThan: version)
        if stored.isNew, !isNew { await dropDecisions(subject, stored.isDisabled) }
    }

    /// Stores the claims of an account with its sessions.
    /// - Returns: whether they are newer than the stored ones, and whether the account is disabled.
    private func store(
        _ subject: String, ifNewerThan stored: Int64?
    ) async throws(PublicationError) -> (isNew: Bool, isDisabled: Bool) {
        let claims: VersionedClaims
        do throws(AccountError) { claims = try await accounts.claims(of: subject) } catch { throw .accounts(error) }
        guard claims.version > max(stored ?? 0, 0) else { return (false, claims.isDisabled) }
        do throws(SessionError) {
            return (try await sessions.apply(claims, to: subject), claims.isDisabled)
        } catch {
            throw .sessions(error)
        }
    }

    /// Why claims could not be published.
    package enum PublicationError: Error {
        case accounts(AccountError)
        case sessions(SessionError)

        package var code: ErrorCode {
            switch self {
            case .accounts(let error): error.code
            case .sessions(let error): error.code
            }
        }
    }
}
