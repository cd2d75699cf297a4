internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder

extension Authenticator {
    /// Reads a credential.
    ///
    /// - Parameter facts: the request; called on a route whose decisions depend on it.
    /// - Throws: 401 for one that no route could accept.
    @inline(__always)
    mutating func present(
        _ credential: RequestCredential, _ bytes: UnsafeBufferPointer<UInt8>, on route: Int,
        for facts: () -> RequestFacts
    ) throws(Failure) -> PresentedCredential {
        switch credential {
        case .none: throw .credentialMissing
        case .authorization(let range):
            switch unsafe AuthorizationValue(bytes.span, range) {
            case .bearer(let token): return unsafe presentToken(bytes, token, isDPoP: false, on: route, for: facts)
            case .dpop(let token): return unsafe presentToken(bytes, token, isDPoP: true, on: route, for: facts)
            case .basic(let value): return unsafe present(.basic, value, bytes[value], on: route, for: facts)
            case .other: throw .credentialInvalid("auth.scheme_not_accepted")
            case .malformed: throw .credentialInvalid("auth.malformed_authorization")
            }
        case .header(let found):
            guard !found.value.isEmpty else { throw .credentialInvalid("auth.header_not_accepted") }
            if rules.plan(of: route).singleUseSources.contains(found.source) {
                return unsafe PresentedCredential(
                    form: .header(source: found.source), range: found.value, value: bytes[found.value],
                    key: UnsafeBufferPointer(start: nil, count: 0), isDigest: true, isSingleUse: true)
            }
            return unsafe present(
                .header(source: found.source), found.value, bytes[found.value], on: route, for: facts)
        case .cookie(let range):
            return unsafe PresentedCredential(form: .cookie, range: range, value: bytes[range], key: bytes[range])
        case .certificate(let certificate):
            return unsafe PresentedCredential(
                form: .certificate, range: ByteRange(from: 0, to: 0), value: certificate.der, key: certificate.digest,
                isDigest: true)
        }
    }

    /// A token of `Authorization`; a session does not depend on the request.
    @inline(__always)
    private mutating func presentToken(
        _ bytes: UnsafeBufferPointer<UInt8>, _ range: ByteRange, isDPoP: Bool, on route: Int,
        for facts: () -> RequestFacts
    ) -> PresentedCredential {
        let token = unsafe bytes[range]
        guard unsafe !SessionPrefix.begins(token) else {
            return unsafe PresentedCredential(
                form: .session, range: range, value: token, key: token, isDPoP: isDPoP)
        }
        var presented = unsafe present(.direct, range, token, on: route, for: facts)
        presented.isDPoP = isDPoP
        return presented
    }

    /// A credential of a provider: cached under a digest where decisions depend on the request, and passwords always.
    @inline(__always)
    private mutating func present(
        _ form: CredentialForm, _ range: ByteRange, _ value: UnsafeBufferPointer<UInt8>, on route: Int,
        for facts: () -> RequestFacts
    ) -> PresentedCredential {
        if rules.routes[route].dependsOnRequest {
            return unsafe presentDependent(form, range, value, on: route, for: facts)
        }
        guard form == .basic else {
            return unsafe PresentedCredential(form: form, range: range, value: value, key: value)
        }
        return unsafe PresentedCredential(
            form: form, range: range, value: value, key: digests.digest(of: value), isDigest: true)
    }

    /// A credential of a provider whose decisions depend on the request.
    // Not inlined: the memory that facts need is found out at run time.
    @inline(never)
    private mutating func presentDependent(
        _ form: CredentialForm, _ range: ByteRange, _ value: UnsafeBufferPointer<UInt8>, on route: Int,
        for facts: () -> RequestFacts
    ) -> PresentedCredential {
        unsafe PresentedCredential(
            form: form, range: range, value: value,
            key: digests.digest(of: value, for: facts(), by: rules.plan(of: route).reuseKey), isDigest: true)
    }
}
