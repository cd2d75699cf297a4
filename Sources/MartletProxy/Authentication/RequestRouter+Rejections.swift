internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider

extension RequestRouter {
    /// Logs why a credential was rejected.
    /// - Parameter target: what has verified it, if anything did.
    func logRejection(
        _ error: AuthenticationError, _ credential: Credential, by target: Verifier.Target?,
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        let provider: ProviderHandle? = if case .provider(let handle) = target { handle } else { nil }
        let client = downstreams.clientSide(of: exchange, &exchanges)
        let received =
            provider?.readsHead == true
            ? unsafe client.receivedHead(head, bytes, trusting: context.snapshot.trustedProxies) : nil
        context.debug.credentialRejected(
            requestID: unsafe String(decoding: exchanges[exchange].record.texts.requestID, as: UTF8.self), error,
            provider: provider, credential: credential,
            in: AuthenticationContext(
                now: context.time.unixTime,
                deadline: MonotonicTime(nanoseconds: context.now &+ Authenticator.verificationTimeout),
                client: exchanges[exchange].clientNetwork(&downstreams),
                request: provider?.facts(of: exchanges[exchange].record.texts, head: received)))
    }
}
