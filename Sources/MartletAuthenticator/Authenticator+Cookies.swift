package import MartletHTTP
internal import MartletRouter

/// Requests whose credential is the session cookie.
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
}
