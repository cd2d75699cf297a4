internal import MartletCore
package import MartletHTTP

/// The session cookie as a credential.
extension Authenticator {
    /// Decides about a request whose credential is the session cookie, on a route that requires or uses one.
    ///
    /// - Parameter cookie: where its value is in `bytes`.
    package mutating func authorize(
        _ request: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, cookie: ByteRange,
        result: BoxedVerificationResult?, at time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let value = unsafe bytes[cookie]
        credential.isCookie = true
        let presented = unsafe PresentedCredential(form: .cookie, range: cookie, value: value, key: value)
        return authorize(request, presented, result?.result, time, &credential)
    }

    /// Retains the cookie of an exchange whose decision is not cached, as none is while the cookie is replaced.
    mutating func retainCookie(
        _ cookie: UnsafeBufferPointer<UInt8>, of exchange: ExchangeID, _ credential: inout CredentialState
    ) {
        guard credential.revocationID != 0 else { return }
        retainedTokens[exchange] = RetainedToken(token: Secret(unsafe Array(cookie)), form: .cookie)
        credential.retainsToken = true
    }
}
