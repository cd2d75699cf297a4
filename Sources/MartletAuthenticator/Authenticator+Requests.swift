internal import MartletCore
package import MartletHTTP
package import MartletProvider
internal import MartletResponder
internal import MartletRouter

/// Routes on which more than `Authorization` decides: headers of their own, and parts of the request.
extension Authenticator {
    /// Whether decisions on a route depend on parts of the request, so that ``authorize(_:_:authorization:for:result:at:_:)``
    /// has to be called.
    package func dependsOnRequest(_ route: Int) -> Bool { rules.routes[route].dependsOnRequest }

    /// Decides about a request whose credential is a header of its own.
    ///
    /// - Parameters:
    ///   - header: where it is in `bytes`.
    ///   - facts: the request, where decisions depend on it.
    package mutating func authorize(
        _ request: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, header: HeaderSearch.Found,
        for facts: @autoclosure () -> RequestFacts, result: BoxedVerificationResult?, at time: LoopTime,
        _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let value = unsafe bytes[header.value]
        credential.offersBasic = rules.routes[request.route].acceptsBasic
        guard value.count > 0 else {
            return .rejected(Rejection(.credentialInvalid("auth.header_not_accepted")))
        }
        credential.headerSource = Int16(header.source)
        let presented = unsafe present(
            .header(source: header.source), header.value, value, on: request.route, for: facts())
        return authorize(request, presented, result?.result, time, &credential)
    }

    /// Decides about a request with `Authorization`, on a route whose decisions depend on parts of the request.
    package mutating func authorize(
        _ request: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, authorization: ByteRange,
        for facts: @autoclosure () -> RequestFacts, result: BoxedVerificationResult?, at time: LoopTime,
        _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let (form, range, isDPoP): (CredentialForm, ByteRange, Bool)
        switch unsafe AuthorizationValue(bytes.span, authorization) {
        // A session does not depend on the request.
        case .bearer(let token) where unsafe !SessionPrefix.begins(bytes[token]):
            (form, range, isDPoP) = (.direct, token, false)
        case .dpop(let token) where unsafe !SessionPrefix.begins(bytes[token]):
            (form, range, isDPoP) = (.direct, token, true)
        case .basic(let value): (form, range, isDPoP) = (.basic, value, false)
        case .bearer, .dpop, .other, .malformed:
            return unsafe authorize(
                request, bytes, authorization: authorization, result: result, at: time, &credential)
        }
        credential.offersBasic = rules.routes[request.route].acceptsBasic
        var presented = unsafe present(form, range, bytes[range], on: request.route, for: facts())
        presented.isDPoP = isDPoP
        return authorize(request, presented, result?.result, time, &credential)
    }

    private mutating func present(
        _ form: CredentialForm, _ range: ByteRange, _ value: UnsafeBufferPointer<UInt8>, on route: Int,
        for facts: @autoclosure () -> RequestFacts
    ) -> PresentedCredential {
        guard rules.routes[route].dependsOnRequest else {
            return unsafe PresentedCredential(form: form, range: range, value: value, key: value)
        }
        let parts = rules.plan(of: route).reuseKey
        return unsafe PresentedCredential(
            form: form, range: range, value: value, key: digests.digest(of: value, for: facts(), by: parts),
            isDigest: true)
    }
}

extension AuthenticationRules {
    /// The headers that are credentials on a route.
    package func headerNames(on route: Int) -> [String] {
        guard routes[route].readsRequest else { return [] }
        return plan(of: route).headerSources.flatMap { headerSources[Int($0)].fieldNames }
    }

    /// The fields that no upstream gets unless its route says so, whether or not its providers read them: the headers
    /// of keys of all providers, and proofs of keys.
    package var withheldNames: [String] { ["DPoP"] + headerSources.filter { !$0.isSignature }.flatMap(\.fieldNames) }

    /// Whether a request without a credential that its route accepts has one of the gateway's own in a header that is a
    /// credential elsewhere.
    package func hasForeignKey(
        on route: Int, _ fields: borrowing FieldList, in bytes: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard routes[route].mode == .optional else { return false }
        for index in 0..<fields.count {
            let field = fields[index]
            if unsafe keyHeaders.mayContain(field) && headerIndex.source(of: field, in: bytes.span, keyHeaders) != nil
                && OwnToken.appears(in: bytes[field.value])
            {
                return true
            }
        }
        return false
    }

    /// The headers that are credentials on any route, and that of the assertion: who has it is believed to be the
    /// gateway by the upstream that it is for.
    package var credentialNames: [String] {
        headerSources.flatMap(\.fieldNames) + (assertion.map { [$0.headerName] } ?? [])
    }

    /// The providers of a route.
    func plan(of route: Int) -> AuthenticationPlan { plans[Int(routes[route].plan)] }
}
