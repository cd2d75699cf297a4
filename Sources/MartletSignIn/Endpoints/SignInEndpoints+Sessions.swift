internal import MartletAccounts
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Endpoints for the caller's own sessions.
extension SignInEndpoints {
    /// `GET /session`.
    func session(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let identity = caller.principal.identity
        var response: JSONObject = [
            "subject": .string(caller.principal.subject),
            "provider": .string(caller.principal.provider),
            "claims": .object(identity.claims),
            "session_id": .string(caller.session.id),
            "auth_time": .integer(identity.authTime.seconds),
            "expires_at": .integer(identity.expiresAt.seconds),
        ]
        // The session is valid whether or not the account store is available.
        if setup.life != nil {
            let states = try? await statusOfIdentities(of: caller.session.subject)
            response["identities"] = states.map { .array($0.map(\.entry)) }
        }
        return SignInResponse.json(response)
    }

    /// `GET /sessions`.
    func sessions(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let summaries = try await fromSessions(await setup.sessions.list(subject: caller.session.subject))
        let entries = summaries.map { summary in
            JSONValue.object(summary.entry(isCurrent: summary.id.hasSameBytes(as: caller.session.id)))
        }
        return SignInResponse.json(["sessions": .array(entries)])
    }

    /// `DELETE /sessions/{id}`: another account's session looks like a missing one.
    func endSession(_ id: String, _ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let session = SessionReference(subject: caller.session.subject, id: id)
        guard try await fromSessions(await setup.sessions.isLive(session)) else {
            throw .notFound(.signInUnknownSession)
        }
        try await ends.end(SessionsEnd("ended_by_user", only: id), of: session.subject)
        return SignInResponse.noContent
    }

    /// `POST /logout`: ends this session or, with `?all=true`, all of the subject's.
    func logout(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let endsAll = try LogoutQuery.endsAll(request.query)
        let caller = try await caller(of: request)
        try await ends.logOut(caller, everywhere: endsAll)
        deleteCookie(of: caller, request)
        return SignInResponse.noContent
    }

    /// `POST /revoke` (RFC 7009): ends the session of an access token or a refresh token.
    ///
    /// An unknown token is a success (§2.2), and `token_type_hint` is not needed: tokens say what they are.
    func revoke(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let form = try SignInBody.form(of: request)
        let token = try read(form.requiredSecret("token"))
        do throws(Failure) {
            try await withBudget(budgets.revocations, request) { () async throws(Failure) in
                let accessPrefix = type(of: setup.sessions).accessPrefix
                guard token.withBytes({ $0.starts(with: accessPrefix.utf8) }) else {
                    return try await ends.end(withRefreshToken: token, request)
                }
                guard let session = try await sessionToEnd(token, request), let id = session.sessionID else { return }
                try await ends.end(SessionsEnd("logout", only: id), of: session.subject)
            }
        } catch {
            guard error.status == 401 else { throw error }
        }
        return SignInResponse.empty
    }

    /// Whose session an access token is of. Whoever has the token may end it: no proof is needed for that, and one that
    /// has expired is one as well.
    private func sessionToEnd(_ token: Secret, _ request: LocalRequest) async throws(Failure) -> RejectedCaller? {
        let owner: RejectedCaller?
        do throws(AuthenticationError) {
            let credential = Credential(bearer: token.withBytes { $0 })
            let principal = try await setup.sessions.verify(credential, in: context(of: request)).principal
            owner = RejectedCaller(
                subject: principal.subject, sessionID: principal.sessionID, provider: principal.provider)
        } catch {
            guard error.code == .sessionTokenExpired else { throw .authentication(error) }
            owner = error.caller
        }
        request.callerNote?.note(owner)
        return owner
    }
}

/// The query of a logout.
private enum LogoutQuery {
    /// Accepts only `true` and `false`, so that a typing error does not leave sessions alive.
    static func endsAll(_ query: String) throws(Failure) -> Bool {
        let values = query.utf8.split(separator: UInt8(ascii: "&")).filter { pair in
            pair.elementsEqual("all".utf8) || pair.starts(with: "all=".utf8)
        }
        guard let value = values.first else { return false }
        guard values.count == 1 else { throw .malformed(.signInBadQuery) }
        if value.elementsEqual("all=true".utf8) { return true }
        if value.elementsEqual("all=false".utf8) { return false }
        throw .malformed(.signInBadQuery)
    }
}
