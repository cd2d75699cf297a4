import MartletConfig
import MartletCore
import MartletHTTP
import MartletProvider
import MartletResponder
import Testing

@testable import MartletAuthenticator

/// Credentials that are bound to a key or a certificate of the client.
@Suite struct BoundCredentialTests {
    private static let key = CredentialBinding(keyThumbprint: "jkt")
    private static let certificate = CredentialBinding(certificateThumbprint: "x5t")
    private static let allowed = Decided.authorized(consumesCredential: true)

    @Test func `nothing is bound without a thumbprint`() { #expect(CredentialBinding() == nil) }

    private static let schemes: [(CredentialBinding?, String, Decided)] = [
        (nil, "Bearer t-1", allowed), (nil, "DPoP t-1", .rejected(401, "auth.token_not_bound")),
        (key, "Bearer t-1", .rejected(401, "auth.bound_token")),
        (key, "DPoP t-1", .unproven(key: "jkt", certificate: nil)),
        (key, "dpop   t-1", .unproven(key: "jkt", certificate: nil)),
        (certificate, "Bearer t-1", .unproven(key: nil, certificate: "x5t")),
        (certificate, "DPoP t-1", .rejected(401, "auth.token_not_bound")),
        (
            CredentialBinding(keyThumbprint: "jkt", certificateThumbprint: "x5t"), "DPoP t-1",
            .unproven(key: "jkt", certificate: "x5t")
        ),
    ]

    @Test(arguments: schemes)
    func `a token needs the scheme and the proof of its binding`(
        binding: CredentialBinding?, authorization: String, expected: Decided
    ) {
        var bench = AuthenticatorBench()
        let verified = AuthenticatorBench.verified(boundTo: binding)
        #expect(bench.decide("required", authorization, result: verified) == expected)
        // The same once its principal is cached.
        #expect(bench.decide("required", authorization, result: verified) == expected)
    }

    @Test(arguments: ["DPoP", "DPoP a b", "DPoP =", "DPoP a, DPoP b"])
    func `the scheme has one token`(authorization: String) {
        var bench = AuthenticatorBench()
        #expect(bench.decide("required", authorization) == .rejected(401, "auth.malformed_authorization"))
    }

    @Test func `is verified like any other, and a session too`() {
        var bench = AuthenticatorBench()
        #expect(bench.decide("required", "DPoP t-1") == .pending(by: "tokens"))
        #expect(bench.decide("required", "DPoP mat_1") == .pending(by: "sessions"))
        #expect(bench.decide("sessions", "DPoP t-1") == .rejected(401, "auth.direct_not_accepted"))
    }

    @Test(arguments: [(key, "DPoP t-1"), (certificate, "Bearer t-1")])
    func `each request needs a proof of its own, also where the token is known`(
        binding: CredentialBinding?, authorization: String
    ) {
        var bench = AuthenticatorBench()
        let unproven = Decided.unproven(
            key: binding?.keyThumbprint, certificate: binding?.certificateThumbprint)
        let verified = AuthenticatorBench.verified(boundTo: binding)
        var credential = CredentialState()
        #expect(bench.decide("required", authorization, &credential, result: verified) == unproven)
        credential.proof = .held
        #expect(bench.decide("required", authorization, &credential, result: verified) == Self.allowed)
        #expect(credential.decision == -1 && credential.end == 2_000_000)
        // The next request: the token is not verified again, its proof is.
        #expect(bench.decide("required", authorization) == unproven)
        let count = bench.authenticator.decisionCount
        #expect(count == 0)
    }

    @Test func `a proof that does not hold is 401, one that cannot be checked 503`() {
        for (error, expected) in [
            (AuthenticationError.rejected("dpop.replayed"), Decided.rejected(401, "dpop.replayed")),
            (.unavailable("dpop.store_unavailable"), .rejected(503, "dpop.store_unavailable")),
        ] {
            var bench = AuthenticatorBench()
            let verified = AuthenticatorBench.verified(boundTo: Self.key)
            var credential = CredentialState()
            _ = bench.decide("required", "DPoP t-1", &credential, result: verified)
            credential.concludeProof(.failure(error))
            #expect(bench.decide("required", "DPoP t-1", &credential, result: .failure(error)) == expected)
            #expect(credential.proof == .none)
        }
    }

    @Test func `the result of a proof is that of its configuration alone`() {
        var credential = CredentialState()
        credential.concludeProof(nil)
        #expect(credential.proof == .none)
        credential.concludeProof(AuthenticatorBench.verified())
        #expect(credential.proof == .held)
    }

    @Test func `a bound token is no proof for others`() {
        var bench = AuthenticatorBench()
        let bound = AuthenticatorBench.verified(boundTo: Self.certificate)
        let free = AuthenticatorBench.verified("bob", boundTo: nil)
        _ = bench.decide("required", "Bearer t-1", result: bound)
        #expect(bench.decide("required", "Bearer t-2", result: free) == Self.allowed)
        #expect(bench.decide("required", "Bearer t-1") == .unproven(key: nil, certificate: "x5t"))
    }

    // MARK: Certificates as credentials

    private struct CertificateLoop: ~Copyable {
        var authenticator: Authenticator

        init() {
            let rules = Samples.rules(
                [
                    Samples.route("machines", .required(providers: ["machines"])),
                    Samples.route("tokens", .required(providers: ["tokens"])),
                ],
                providers: [
                    Samples.handle("machines", .clientCertificate), Samples.handle("tokens", .bearerPrefix("t-")),
                ])
            authenticator = Authenticator(rules)
        }

        mutating func decide(_ der: [UInt8], result: VerificationResult? = nil) -> (Decided, [UInt8]) {
            var credential = CredentialState()
            guard let routed = RoutedRequest(exchange: AuthenticatorBench.exchange, route: 0, mount: -1) else {
                return (.rejected(0, "no.route"), [])
            }
            let outcome = unsafe authenticator.authorize(
                routed, UnsafeBufferPointer(start: nil, count: 0),
                presenting: .certificate(ClientCertificateBytes(der: der)), for: Samples.facts,
                result: result.map(BoxedVerificationResult.init), at: AuthenticatorBench.start, &credential)
            switch consume outcome {
            case .authorized: return (.authorized(consumesCredential: credential.decision == -1), [])
            case .rejected(let rejection): return (.rejected(rejection.failure.status, rejection.failure.reason), [])
            case .pending(let request):
                let value = request.credential.withBytes { $0 }
                return (.pending(by: Samples.name(of: request.target) ?? ""), value)
            case .unproven: return (.unproven(key: nil, certificate: nil), [])
            }
        }
    }

    @Test func `a certificate is verified once by the provider that accepts certificates`() {
        var loop = CertificateLoop()
        let first = loop.decide([1, 2, 3])
        #expect(first.0 == .pending(by: "machines") && first.1 == [1, 2, 3])
        let verified = AuthenticatorBench.verified(by: "machines")
        #expect(loop.decide([1, 2, 3], result: verified).0 == Self.allowed)
        #expect(loop.decide([1, 2, 3]).0 == Self.allowed)
        #expect(loop.decide([1, 2, 4]).0 == .pending(by: "machines"))
        #expect(loop.authenticator.rules.routes.map(\.acceptsCertificates) == [true, false])
    }
}
