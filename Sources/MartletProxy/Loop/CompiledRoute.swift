internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// The settings of a route as plain values.
struct CompiledRoute: Sendable {
    /// Index of the handler that responds, or −1.
    let mount: Int
    let mode: Route.Mode
    let bodyLimit: Int
    let streamLimit: Int
    let upstream: Int
    /// The route's rules for the client's fields.
    let rewriting: RequestRewriter.Rules
    let stripsPrefix: Bool
    let acceptsSessions: Bool
    let acceptsDirect: Bool
    /// Whether one of its providers verifies names and passwords.
    let acceptsBasic: Bool
    let tunnels: TunnelLimits

    init(_ route: Route, _ providers: [ProviderHandle]) {
        mount = route.mount
        acceptsSessions = route.credentials.contains(.session)
        acceptsDirect = route.credentials.contains(.direct)
        acceptsBasic = acceptsDirect && route.providers.contains { providers[$0].accepts.contains(.basic) }
        mode = route.mode
        bodyLimit = route.bodyLimit ?? .max
        streamLimit = route.streamLimit ?? .max
        upstream = route.upstream
        stripsPrefix = route.stripsPrefix
        let credentials: RequestRewriter.Rules = route.forwardsCredentials ? .keepsOwnTokens : .dropsAuthorization
        rewriting = route.removeNames.isEmpty ? credentials : credentials.union(.hasRemovals)
        tunnels = TunnelLimits(route.upgrade)
    }
}

/// A route's limits for upgrades and for exchanges that outlive their credential; times in nanoseconds.
struct TunnelLimits: Sendable {
    /// Whether any upgrade is allowed.
    let areAllowed: Bool
    /// How long after its credential an exchange ends; −1 for never.
    let expiryGrace: Int64
    let idleTimeout: Int64
    let maximumAge: Int64

    init(_ upgrade: UpgradeConfiguration) {
        areAllowed = !upgrade.protocols.isEmpty
        expiryGrace = if case .after(let grace) = upgrade.closeOnExpiry { grace.boundedNanoseconds } else { -1 }
        idleTimeout = upgrade.idle.boundedNanoseconds
        maximumAge = (upgrade.maximumConnectionAge ?? .seconds(Int64.max)).boundedNanoseconds
    }
}
