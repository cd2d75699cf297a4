internal import MartletHTTP
package import MartletProvider
internal import MartletResponder

extension Authenticator {
    /// Decides about a request by the one credential that it presents, on routes where more than `Authorization` may be
    /// one, or may decide.
    ///
    /// - Parameters:
    ///   - bytes: its head.
    ///   - facts: the request, where decisions depend on it.
    ///   - result: of the verification that an earlier outcome required; `nil` when it was void.
    package mutating func authorize(
        _ request: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, presenting: RequestCredential,
        for facts: @autoclosure () -> RequestFacts, result: BoxedVerificationResult?, at time: LoopTime,
        _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let route = request.route
        credential.isCookie = presenting.isCookie
        switch presenting {
        case .none:
            return unsafe authorize(request, bytes, authorization: nil, result: result, at: time, &credential)
        case .authorization(let range) where !rules.routes[route].dependsOnRequest:
            return unsafe authorize(request, bytes, authorization: range, result: result, at: time, &credential)
        case .authorization, .certificate, .cookie: break
        case .header(let found): credential.headerSource = Int16(found.source)
        }
        do throws(Failure) {
            let presented = unsafe try present(presenting, bytes, on: route, for: facts)
            return authorize(request, presented, result, time, &credential)
        } catch {
            credential.offersBasic = rules.routes[route].acceptsBasic
            return .rejected(because: error)
        }
    }
}
