internal import MartletAccounts
internal import MartletAudit
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The endpoints for the account as a whole, and for the notifications of issuers.
extension SignInEndpoints {
    /// `POST /{provider}/notifications`: 200 once the notification is filed; the issuer sends it again otherwise.
    ///
    /// Only what cannot be verified counts for the budget: an issuer sends all of its notifications from few addresses.
    func notify(
        _ request: LocalRequest, from provider: ProviderHandle, _ notifying: any Notifying
    ) async throws(Failure) -> LocalResponse {
        guard let life = setup.life else { throw .noRoute(.signInNoAccounts) }
        let notification = try await withBudget(budgets.notifications, request, rejections: [400]) {
            () async throws(Failure) in
            let form = try SignInBody.notification(of: request)
            let context = context(of: request)
            do throws(AuthenticationError) {
                return try await provider.run(in: context) { () async throws(AuthenticationError) in
                    try await notifying.readNotification(form, in: context)
                }
            } catch {
                throw error.disposition == .rejected ? .malformed(error.code) : .authentication(error)
            }
        }
        let filed = try await fromAccounts(await life.receive(notification, from: provider))
        audit.record(
            .notification, request, provider: provider.name,
            detail: "\(notification.type) \(filed.outcome.rawValue)",
            caller: filed.subject.map { NamedCaller(subject: $0, sessionID: nil) })
        setup.logger.info(
            "notification received", ("provider", provider.name), ("type", notification.type),
            ("outcome", filed.outcome.rawValue), ("subject", filed.subject ?? "-"),
            ("request_id", request.requestID))
        return SignInResponse.json(["outcome": .string(filed.outcome.rawValue)])
    }

    /// `GET /account`: the account with its profile and the states of its identities.
    func account(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts else { throw .noRoute(.signInNoAccounts) }
        let caller = try await caller(of: request)
        let profile = try await fromAccounts(await accounts.profile(of: caller.session.subject))
        return SignInResponse.json([
            "subject": .string(caller.principal.subject),
            "profile": .object(profile),
            "identities": .array(try await statusOfIdentities(of: caller.session.subject).map(\.entry)),
        ])
    }

    /// `DELETE /account`: 202 when the deletion is recorded and the sessions have ended.
    func deleteAccount(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let life = setup.life else { throw .noRoute(.signInNoAccounts) }
        let caller = try await caller(of: request)
        let form = try SignInBody.optionalForm(of: request)
        try await requireFreshProof(of: caller, within: Self.deletionProofAge, form: form, request)
        setup.logger.info(
            "account deletion requested", ("subject", caller.session.subject), ("request_id", request.requestID))
        // Before the work starts, which records that it is done.
        audit.record(.deletion, request, detail: "requested")
        do throws(AccountError) {
            try await life.requestDeletion(of: caller.session.subject, reason: "user")
        } catch {
            let failure = Failure.account(error)
            audit.record(.deletion, request, .failed, detail: "requested", reason: failure.reason)
            throw failure
        }
        return SignInResponse.accepted
    }

    /// How old the proof of a caller who deletes an account may be.
    static let deletionProofAge = Duration.seconds(600)

    /// The states of the account's identities; none without accounts.
    func statusOfIdentities(of subject: String) async throws(Failure) -> [IdentityStatus] {
        guard let life = setup.life else { return [] }
        return try await fromAccounts(await life.states(of: subject))
    }
}

extension IdentityStatus {
    /// The entry in lists.
    var entry: JSONValue {
        .object([
            "provider": .string(provider), "state": .string(state?.name ?? IdentityState.unknownName),
            "checked_at": checkedAt.map { .integer($0.seconds) } ?? .null,
        ])
    }
}
