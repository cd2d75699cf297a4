internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletTLS

/// What a request shows of its client: the proof of a key, and a certificate.
enum RequestProofs {
    /// Checks the proof of a verified credential: that of a certificate here, that of a key with the store.
    @inline(never)
    static func submit(
        _ request: ProofRequest, of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ events: inout EventLoop
    ) {
        let binding = request.binding
        if let expected = binding.certificateThumbprint,
            let failure = unsafe certificateFailure(expected, exchange, bytes, &events)
        {
            return unsafe events.reject(exchange, Rejection(failure), bytes)
        }
        guard binding.keyThumbprint != nil else {
            events.loop.exchanges[exchange].credential.proof = .held
            return unsafe events.processRequest(
                exchange, bytes, verification: BoxedVerificationResult(.success(request.verified)))
        }
        guard let verifier = events.loop.context.snapshot.authentication.proofs else {
            return unsafe events.reject(exchange, Rejection(.proofInvalid("auth.proof_not_supported")), bytes)
        }
        let proof = unsafe presented(request, exchange, bytes, &events)
        let downstream = events.loop.exchanges[exchange].downstream
        let deadline = events.loop.now &+ Authenticator.verificationTimeout
        let job = Verifier.Job(
            credential: proof.token, target: .proof(verifier, proof, request.verified), subjects: nil,
            context: AuthenticationContext(
                now: events.loop.time.unixTime, deadline: MonotonicTime(nanoseconds: deadline),
                client: events.loop.exchanges.clientNetwork(of: exchange, &events.loop.downstreams)),
            sink: events.loop.mailbox, exchange: ExchangeID(exchange), epoch: events.authenticator.epoch,
            trace: events.loop.context.tracing.isOn
                ? RequestTracing.beginVerification(of: exchange, &events.loop) : nil)
        events.loop.exchanges[exchange].credential.proof = .pending
        events.loop.downstreams[downstream].phase = .authenticating
        events.loop.downstreams.arm(downstream, at: deadline, &events.loop.context)
        events.loop.verifier.submit(job)
    }

    /// Why the client's certificate is not the one that a credential is bound to.
    static func certificateFailure(
        _ expected: String, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ events: inout EventLoop
    ) -> Failure? {
        do throws(Failure) {
            guard let certificate = unsafe try clientCertificate(of: exchange, bytes, &events) else {
                return .certificateInvalid("auth.certificate_missing")
            }
            return certificate.thumbprint.hasSameBytes(as: expected)
                ? nil : .certificateInvalid("auth.certificate_mismatch")
        } catch {
            return error
        }
    }

    /// The client's certificate: that of the handshake, or the one that a trusted proxy names, which ended the client's
    /// TLS (RFC 9440). The proxy's own is not the client's.
    /// - Throws: 400 for a field that a trusted proxy would not send.
    static func clientCertificate(
        of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ events: inout EventLoop
    ) throws(Failure) -> ClientCertificateBytes? {
        let downstream = events.loop.exchanges[exchange].downstream
        if events.loop.downstreams[downstream].origin.address.isTrusted {
            if let der = unsafe try forwardedCertificate(bytes, events.router) {
                return ClientCertificateBytes(der: der)
            }
            // The peer of a check is never the client.
            let isForwarded =
                events.router.head.fields.has(.xForwardedFor) || events.router.head.fields.has(.forwarded)
                || !events.loop.exchanges[exchange].request.check.isEmpty
            guard !isForwarded else { return nil }
        }
        let connection =
            events.loop.downstreams[downstream].isStream
            ? events.loop.downstreams[downstream].stream.connection : downstream
        if let known = events.loop.downstreams[connection].handshake.clientCertificate { return known }
        guard let der = events.loop.downstreams[connection].transport.engine?.peerCertificate else { return nil }
        let certificate = ClientCertificateBytes(der: der)
        events.loop.downstreams[connection].handshake.clientCertificate = certificate
        return certificate
    }

    /// Checks that no other site caused a request whose credential is a certificate.
    /// - Throws: 403 for one that a browser sent for another site, 400 where the fields that say so are repeated.
    static func checkSite(
        of exchange: Handle<Exchange>, on route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ events: inout EventLoop
    ) throws(Failure) {
        guard unsafe CrossSiteRule.isFromBrowser(bytes.span, events.router.head.fields) else { return }
        let authority = unsafe clientURL(of: exchange, bytes, &events).authority
        let rules = events.loop.context.snapshot.routeRules[route].crossOrigin
        let named = unsafe rules?.namedOrigin(of: events.router.head.fields, bytes.span) ?? []
        do throws(BrowserError) {
            unsafe try CrossSiteRule.checkCertificate(
                bytes.span, events.router.head.fields, method: events.router.head.method,
                isWebSocket: !events.loop.exchanges[exchange].tunnel.isNone
                    || events.loop.exchanges[exchange].request.check.contains(.opensWebSocket), authority: authority,
                origins: named)
        } catch {
            throw error.failure
        }
    }

    /// The certificate in the field `Client-Cert`; `nil` without the field.
    private static func forwardedCertificate(
        _ bytes: UnsafeBufferPointer<UInt8>, _ router: borrowing RequestRouter
    ) throws(Failure) -> [UInt8]? {
        let values = unsafe router.head.values(of: "client-cert", bytes)
        guard let value = values.first else { return nil }
        guard values.count == 1 else { throw .malformed("client_cert.repeated") }
        do throws(ClientCertificateFieldError) {
            return try ClientCertificateFields.certificate(value)
        } catch {
            throw .malformed(error.code)
        }
    }

    /// The certificates that a trusted proxy names besides the client's.
    /// - Throws: 400 for a field that a trusted proxy would not send.
    static func certificateChain(
        of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ events: inout EventLoop
    ) throws(Failure) -> [[UInt8]] {
        let downstream = events.loop.exchanges[exchange].downstream
        guard events.loop.downstreams[downstream].origin.address.isTrusted else { return [] }
        let values = unsafe events.router.head.values(of: "client-cert-chain", bytes)
        guard !values.isEmpty else { return [] }
        do throws(ClientCertificateFieldError) {
            return try ClientCertificateFields.chain(Array(values.joined(separator: ", ".utf8)))
        } catch {
            throw .malformed(error.code)
        }
    }

    /// What the proof has to be for: the URL as the client sees it.
    static func presented(
        _ request: ProofRequest, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ events: inout EventLoop
    ) -> PresentedProof {
        let url = unsafe clientURL(of: exchange, bytes, &events)
        return unsafe PresentedProof(
            proofs: events.router.head.values(of: "dpop", bytes),
            method: String(decoding: bytes[events.router.head.methodText], as: UTF8.self),
            scheme: url.scheme, authority: url.authority, path: url.path,
            token: request.location.form.credential(Array(bytes[request.location.range])))
    }

    /// The request's head as the client sent it, for a provider that reads it.
    static func receivedHead(
        of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ events: inout EventLoop
    ) -> ReceivedHead {
        let url = unsafe clientURL(of: exchange, bytes, &events)
        let check = events.loop.exchanges[exchange].request.check
        return unsafe ReceivedHead(
            events.router.head, bytes, scheme: url.scheme, authority: url.authority,
            hasBody: check.isEmpty
                ? !events.loop.exchanges[exchange].body.framing.isEmpty : check.contains(.mayHaveBody))
    }

    private static func clientURL(
        of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ events: inout EventLoop
    ) -> ClientURL {
        let origin = events.loop.downstreams[events.loop.exchanges[exchange].downstream].origin
        let check = events.loop.exchanges[exchange].request.check
        guard check.isEmpty else {
            let isSecure = check.contains(.isSecure) || (origin.rules.isSecure && !check.contains(.isInsecure))
            return unsafe ClientURL(
                scheme: isSecure ? "https" : "http",
                authority: String(decoding: bytes[events.router.head.authority], as: UTF8.self),
                path: String(decoding: bytes[events.router.head.path], as: UTF8.self))
        }
        return unsafe ClientURL(
            bytes, events.router.head, isSecure: origin.rules.isSecure, isTrusted: origin.address.isTrusted,
            trusting: events.loop.context.snapshot.trustedProxies)
    }
}
