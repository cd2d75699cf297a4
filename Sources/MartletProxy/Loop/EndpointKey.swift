internal import MartletConfig
internal import MartletDecisions

/// What an endpoint is found by, in every loop: that of another upstream, or with another transport, is another one.
struct EndpointKey: Hashable {
    let identity: EndpointIdentity
    let transport: UpstreamTransport
}
