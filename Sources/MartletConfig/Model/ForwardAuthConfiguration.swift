/// `forward_auth:` — how checks of a proxy are responded to.
@frozen package struct ForwardAuthConfiguration: Sendable, Equatable {
    /// Whether there is the block.
    package var isPresent = false
    /// Whether every rejection has a status that proxies pass on: 401 or 403.
    package var deniesAlike = false
    package var redirectsBrowsers = false

    package init() {}
}

extension ServerConfiguration {
    /// Whether any peer is trusted to describe the request of a client.
    package var trustsProxies: Bool { !trustedProxies.isEmpty || listeners.contains(where: \.isTrusted) }
}

extension GatewayConfiguration {
    /// Whether checks have an endpoint: who can use it is a trusted proxy, but its path is reserved where there are
    /// sessions, too.
    package var servesChecks: Bool { server.trustsProxies || server.forwardAuth.isPresent || hasSessionsBlock }
}
