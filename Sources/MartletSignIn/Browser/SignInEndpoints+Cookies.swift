internal import MartletBrowser
internal import MartletCore
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Callers who are authenticated by a session cookie.
extension SignInEndpoints {
    /// Verifies the token of a session cookie; a token that is due is replaced by the response.
    /// - Throws: 401 if it is not valid, 503 when the store is unavailable.
    func caller(
        withCookie cookie: Secret, _ request: LocalRequest, _ browser: BrowserSetup
    ) async throws(Failure) -> Caller {
        let proven: VerifiedSession
        do throws(AuthenticationError) {
            proven = try await browser.sessions.verify(cookie.credential, in: context(of: request))
        } catch {
            request.callerNote?.note(error.caller)
            throw .authentication(error)
        }
        if let replacement = proven.replacement {
            request.callerNote?.note(setCookie: try browser.sessionCookie(replacement.token))
        }
        var caller = try caller(proven, request)
        caller.cookie = cookie
        return caller
    }

    /// Replaces the cookie of a caller whose rights have changed (fixation); other callers have none.
    /// - Parameter proof: of another authentication.
    /// - Returns: the proof that the session has now; `nil` if nothing was replaced.
    @discardableResult
    func renewCookie(
        of caller: Caller, with proof: SessionProof? = nil, _ request: LocalRequest
    ) async throws(Failure) -> SessionProof? {
        guard let browser = setup.browser, let cookie = caller.cookie else { return nil }
        let issued: IssuedCookie
        do throws(SessionError) {
            issued = try await browser.sessions.reissue(cookie, renewedBy: proof, from: request.address)
        } catch {
            // Another change at the same time has replaced it already.
            if error.code == .sessionTokenExpired, proof == nil { return nil }
            throw .session(error)
        }
        request.callerNote?.note(setCookie: try browser.sessionCookie(issued.token))
        return issued.proof
    }

    /// Deletes the cookie of a caller whose session has ended.
    func deleteCookie(of caller: Caller, _ request: LocalRequest) {
        guard let browser = setup.browser, caller.cookie != nil else { return }
        request.callerNote?.note(setCookie: browser.cookies.session.deletion)
    }
}

extension Secret {
    /// The token of a cookie as a credential.
    var credential: Credential { withBytes { Credential(cookie: $0) } }
}

extension LocalResponse {
    /// The same response with the caller and the cookie that were noted meanwhile.
    func noting(_ note: CallerNote) -> LocalResponse {
        var response = self
        (response.caller, response.provider) = (note.caller, note.provider)
        guard let cookie = note.setCookie else { return response }
        if failure == nil {
            response.fields.append((name: "Set-Cookie", value: cookie))
        } else {
            response.failure?.setCookies.append(cookie)
        }
        return response
    }
}
