internal import MartletAuthenticator
package import MartletConfig
internal import MartletCore
package import MartletHTTP
package import MartletRouter

/// The settings of a route as plain values.
@usableFromInline package struct CompiledRoute: Sendable {
    /// What few routes have: a request tests for all of it at the same time.
    @usableFromInline package struct Extras: OptionSet, Sendable {
        @usableFromInline package let rawValue: UInt8

        @inlinable package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Conditions on the request's own headers and parameters.
        @inlinable package static var conditions: Extras { Extras(rawValue: 1) }
        /// Fields of responses that are set or removed.
        @inlinable package static var responseFields: Extras { Extras(rawValue: 2) }
        @inlinable package static var timeout: Extras { Extras(rawValue: 4) }
        /// Rules for pages of other origins.
        @inlinable package static var crossOrigin: Extras { Extras(rawValue: 8) }

        /// Those that an exchange keeps until its response's head.
        @inlinable package static var kept: Extras { [.responseFields, .timeout, .crossOrigin] }
    }

    /// ``mount`` of a route that serves checks alone.
    package static let checksOnly = Int.max

    /// Index of the handler that responds, or −1.
    package let mount: Int
    package let bodyLimit: Int
    package let streamLimit: Int
    /// Index of its upstream, ``own`` where the gateway responds itself, or ``several``.
    package let upstream: Int
    /// Stands for a response of the gateway.
    package static let own = -1
    /// Stands for several upstreams: that share the requests, or of which another one gets copies; and for one whose
    /// requests are traced.
    package static let several = -2
    /// Index of its only upstream where that is ``several`` for other reasons; −1 where several share the requests.
    package let onlyUpstream: Int
    /// Whether another upstream gets copies.
    package let hasMirror: Bool
    /// The route's rules for the client's fields.
    package let rewriting: RequestFieldRules
    /// What excludes most fields from those that it removes.
    package let removals: FieldNameSet.Filter
    package let stripsPrefix: Bool
    /// The path changes beyond its prefix.
    package let rewritesTarget: Bool
    package let extras: Extras
    /// From the request to the response's head, in nanoseconds; `max` without a limit.
    package let timeout: Int64
    /// Its upstream gets the client's `Host`, and a path that changes by its prefix at most.
    package let keepsHost: Bool
    package let tunnels: TunnelLimits
    /// Index of its limits on requests, or −1.
    package let limitPlan: Int

    /// - Parameters:
    ///   - upstreams: those that routes refer to by index.
    ///   - removals: the fields that it removes beyond the reserved ones.
    ///   - isTraced: whether the head for an upstream gets a trace context.
    package init(
        _ route: Route, _ upstreams: [Upstream], removals: FieldNameSet, limitPlan: Int = -1, isTraced: Bool = false
    ) {
        self.limitPlan = limitPlan
        mount = route.servesChecksOnly ? CompiledRoute.checksOnly : route.mount
        bodyLimit = route.bodyLimit ?? .max
        streamLimit = route.streamLimit ?? .max
        let isPlain = route.split == nil && route.mirror == nil && !(isTraced && route.upstream >= 0)
        upstream = isPlain ? route.upstream : Self.several
        onlyUpstream = route.split == nil ? route.upstream : -1
        hasMirror = route.mirror != nil
        stripsPrefix = route.stripsPrefix
        rewritesTarget = route.rewrite != nil
        let keepsClientsHost = route.upstreams.allSatisfy { upstreams[$0].host == .keep }
        keepsHost = keepsClientsHost && route.rewrite == nil && route.host == nil
        timeout = route.timeout.map(\.boundedNanoseconds) ?? .max
        var extras: Extras = route.isConditional ? .conditions : []
        if !route.responseHeaders.isEmpty { extras.insert(.responseFields) }
        if route.timeout != nil { extras.insert(.timeout) }
        if route.crossOrigin != nil { extras.insert(.crossOrigin) }
        self.extras = extras
        let credentials: RequestFieldRules = route.forwardsCredentials ? .keepsOwnTokens : .dropsAuthorization
        self.removals = removals.filter
        rewriting = removals.isEmpty ? credentials : credentials.union(.hasRemovals)
        tunnels = TunnelLimits(route.upgrade)
    }
}

extension Route {
    /// The client fields that its upstream does not get beyond the reserved ones: those that the configuration names,
    /// and headers that are credentials.
    func removedNames(with rules: AuthenticationRules) -> FieldNameSet {
        forwardsCredentials ? removeNames : removeNames.adding(rules.headerNames(on: index))
    }
}

/// What only few routes have: references, which no request touches unless the route's ``CompiledRoute/extras`` say so.
@safe package struct RouteRules: Sendable {
    /// The fields of its responses that it sets and removes.
    package let responseFields: ResponseFieldRules?
    /// Which pages of other origins may use it.
    package let crossOrigin: CrossOriginRules?
    /// The same, to lend it without counting.
    package let lentCrossOrigin: Unmanaged<CrossOriginRules>?
    /// The upstreams that share its requests.
    package let split: RouteSplit?
    /// The upstream that gets copies.
    package let mirror: MirrorPlan?

    /// - Parameters:
    ///   - upstreams: those that routes refer to by index.
    ///   - credentials: names of fields that are credentials on some route.
    package init(_ route: Route, _ upstreams: [Upstream], credentials: [String]) {
        mirror = MirrorPlan(route, upstreams, credentials: credentials)
        responseFields = ResponseFieldRules(route.responseHeaders)
        crossOrigin = route.crossOrigin.map(CrossOriginRules.init)
        unsafe lentCrossOrigin = crossOrigin.map { unsafe Unmanaged.passUnretained($0) }
        split = route.split
    }
}

/// A route's limits for upgrades; times in nanoseconds.
package struct TunnelLimits: Sendable {
    /// Whether any upgrade is allowed.
    package let areAllowed: Bool
    package let idleTimeout: Int64
    package let maximumAge: Int64

    package init(_ upgrade: UpgradeConfiguration) {
        areAllowed = !upgrade.protocols.isEmpty
        idleTimeout = upgrade.idle.boundedNanoseconds
        maximumAge = (upgrade.maximumConnectionAge ?? .seconds(Int64.max)).boundedNanoseconds
    }
}
