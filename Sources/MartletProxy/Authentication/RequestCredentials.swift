internal import MartletAuthenticator
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder

/// Authorizes requests where more than `Authorization` may be a credential or may decide: the session cookie, headers
/// of their own, and parts of the request.
enum RequestCredentials {
    /// Authorizes a request by the one credential that it has.
    @inline(never)
    static func authorize(
        _ exchange: Handle<Exchange>, _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>,
        _ authorization: ByteRange?, _ verification: BoxedVerificationResult?, _ events: inout EventLoop
    ) -> AuthorizedRequest? {
        var header: HeaderSearch.Found?
        if events.loop.context.snapshot.readsRequests {
            do throws(Failure) {
                header = unsafe try events.loop.context.snapshot.authentication.credentialHeader(
                    on: routed.route, events.router.head.fields, in: bytes.span,
                    hasAuthorization: authorization != nil)
            } catch {
                events.loop.reject(exchange, error)
                return nil
            }
            events.loop.exchanges[exchange].credential.hasForeignKey =
                unsafe header == nil && authorization == nil
                && events.loop.context.snapshot.authentication.hasForeignKey(
                    on: routed.route, events.router.head.fields, in: bytes)
        }
        if let browser = events.loop.context.snapshot.browser,
            authorization == nil || events.router.head.fields.has(.cookie)
        {
            return unsafe BrowserAuthorization.authorize(
                exchange, routed, bytes, authorization, header, browser, verification, &events)
        }
        switch unsafe decide(exchange, routed, bytes, authorization, header, verification, &events) {
        case .authorized(let request):
            unsafe events.loop.exchanges[exchange].record.texts.add(names: request.names)
            return request
        case .rejected(let rejection): unsafe events.reject(exchange, rejection, bytes)
        case .pending(let request): unsafe events.submitVerification(request, of: exchange, bytes)
        case .unproven(let request): unsafe RequestProofs.submit(request, of: exchange, bytes, &events)
        }
        return nil
    }

    /// Decides about a request by what was found in it.
    static func decide(
        _ exchange: Handle<Exchange>, _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>,
        _ authorization: ByteRange?, _ header: HeaderSearch.Found?, _ verification: BoxedVerificationResult?,
        _ events: inout EventLoop
    ) -> AuthorizationOutcome {
        let lent = unsafe events.loop.exchanges.all.address(of: exchange)
        guard events.loop.context.snapshot.readsRequests else {
            return unsafe events.authenticator.authorize(
                routed, bytes, authorization: authorization, result: verification, at: events.loop.time,
                &lent.pointee.credential)
        }
        if let header {
            return unsafe events.authenticator.authorize(
                routed, bytes, header: header, for: RequestFacts(lent.pointee.record.texts), result: verification,
                at: events.loop.time, &lent.pointee.credential)
        }
        if authorization == nil, events.authenticator.acceptsCertificates(routed.route) {
            do throws(Failure) {
                if let certificate = unsafe try RequestProofs.clientCertificate(of: exchange, bytes, &events) {
                    unsafe try RequestProofs.checkSite(of: exchange, on: routed.route, bytes, &events)
                    return unsafe events.authenticator.authorize(
                        routed, certificate: certificate, result: verification, at: events.loop.time,
                        &lent.pointee.credential)
                }
            } catch {
                return .rejected(Rejection(error))
            }
        }
        guard let authorization, events.authenticator.dependsOnRequest(routed.route) else {
            return unsafe events.authenticator.authorize(
                routed, bytes, authorization: authorization, result: verification, at: events.loop.time,
                &lent.pointee.credential)
        }
        return unsafe events.authenticator.authorize(
            routed, bytes, authorization: authorization, for: RequestFacts(lent.pointee.record.texts),
            result: verification, at: events.loop.time, &lent.pointee.credential)
    }
}

extension RequestFacts {
    /// The request as the gateway routes it.
    /// - Parameter head: all of it, for a provider that reads it.
    init(_ texts: borrowing RequestTexts, head: ReceivedHead? = nil) {
        self = unsafe RequestFacts(
            method: String(decoding: texts.method, as: UTF8.self), host: String(decoding: texts.host, as: UTF8.self),
            path: String(decoding: texts.path, as: UTF8.self), head: head)
    }
}

extension Verifier.Target {
    /// What a provider gets of a request.
    func facts(of texts: borrowing RequestTexts, head: ReceivedHead? = nil) -> RequestFacts? {
        switch self {
        case .provider(let handle): handle.facts(of: texts, head: head)
        case .sessions, .proof: nil
        }
    }

    /// Whether it needs the whole head.
    var readsHead: Bool {
        switch self {
        case .provider(let handle): handle.readsHead
        case .sessions, .proof: false
        }
    }
}

extension ProviderHandle {
    /// What the provider gets of a request; `nil` if it does not ask for it.
    func facts(of texts: borrowing RequestTexts, head: ReceivedHead? = nil) -> RequestFacts? {
        reuseKey == nil ? nil : RequestFacts(texts, head: head)
    }
}
