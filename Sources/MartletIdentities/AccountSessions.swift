package import MartletAccounts
package import MartletCore
package import MartletSession

/// Ends the sessions of accounts, with the decisions that loops have cached and the logins in progress.
package struct AccountSessions: AccountSessionEnding {
    package let store: any SessionStoring
    package let fence: LoginFence
    /// The names of all providers.
    private let providers: [String]
    private let invalidateDecisions: @Sendable (_ subject: String) async -> Void

    /// - Parameters:
    ///   - fence: where logins in progress look for changes.
    ///   - providers: the names of all providers.
    ///   - invalidateDecisions: has every loop of every instance drop what it has cached about a subject.
    package init(
        _ store: any SessionStoring, fence: LoginFence, providers: [String],
        invalidateDecisions: @escaping @Sendable (_ subject: String) async -> Void
    ) {
        self.store = store
        self.fence = fence
        self.providers = providers
        self.invalidateDecisions = invalidateDecisions
    }

    /// The live sessions of an account.
    package func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        try await store.page(of: subject, from: start)
    }

    /// Ends sessions, in all loops of all instances.
    ///
    /// The mark of the fence comes first. Invalidating decisions waits for other instances: a login that finished
    /// meanwhile would find no mark, and its session would be accepted until it ends with the others, or for good if the
    /// process ended in between. Without the mark the sessions end all the same, before this throws.
    /// - Throws: an error that ``UnmarkedChange`` has caused if logins in progress may leave a session, and nothing else
    ///   is missing.
    package func end(_ end: SessionsEnd, of subject: String) async throws(SessionError) {
        if let only = end.only {
            _ = try await store.end(SessionReference(subject: subject, id: only))
            return
        }
        var unmarked: SessionError?
        if end.endsLogins {
            for provider in end.provider.map({ [$0] }) ?? providers {
                do throws(StoreError) { try await fence.mark(subject, provider: provider) } catch {
                    unmarked = SessionError(error.code, .unavailable, cause: UnmarkedChange(provider: provider))
                }
            }
            await invalidateDecisions(subject)
        }
        try await store.endAll(
            subject: subject, provider: end.provider,
            except: end.except.map { SessionReference(subject: subject, id: $0) })
        if let unmarked { throw unmarked }
    }

    /// Ends sessions, and reports each of them to the webhooks that get that.
    ///
    /// Without the account store they end all the same: that a session ends matters more than that it is reported.
    /// - Parameter life: reports them; `nil` without accounts.
    /// - Throws: also `signin.end_pending` if they end only when the session store is available.
    package func end(
        _ end: SessionsEnd, of subject: String, reportedBy life: IdentityLife?, _ logger: Logger
    ) async throws(SessionError) {
        guard let life, life.reportsEnds else { return try await self.end(end, of: subject) }
        let hasEnded: Bool
        do throws(AccountError) { hasEnded = try await life.end(end, of: subject) } catch {
            logger.error("end of sessions not reported", ("subject", subject), ("code", "\(error.code)"))
            return try await self.end(end, of: subject)
        }
        guard hasEnded else { throw SessionError(.signInEndPending, .unavailable) }
    }
}

/// The mark of a change could not be stored: a login in progress keeps the session that it is about to create.
package struct UnmarkedChange: Error {
    package let provider: String
}

extension ErrorCode {
    /// Sessions end only when their store is available again.
    package static let signInEndPending: ErrorCode = "signin.end_pending"
}
