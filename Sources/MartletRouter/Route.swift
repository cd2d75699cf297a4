package import MartletConfig
package import MartletHTTP

/// A compiled route: its pattern, authorization, headers and upstream.
// lint:large-type one property for each key of a route
package struct Route: Sendable {
    /// Whether callers must authenticate.
    package enum Mode: Sendable {
        /// Credentials are ignored.
        case none
        /// A valid credential is required.
        case required
        /// Requests without a credential are accepted; an invalid credential is still rejected.
        case optional
    }

    /// Its index in the table, in file order.
    package let index: Int
    package let name: String
    /// The index of its upstream in the configuration, the first one of a ``split``; −1 for a mount, for a route with a
    /// response of its own, and for one that serves checks alone.
    package let upstream: Int
    /// The upstreams that share its requests; `nil` for a single one.
    package let split: RouteSplit?
    /// Which requests are copied for another upstream; `nil` for none.
    package let mirror: RouteMirror?
    /// What the gateway responds itself; `nil` for a route to an upstream.
    package let response: RouteResponse?
    /// The index of the mount that handles it in this process; −1 for an upstream.
    package let mount: Int
    package let mode: Mode
    /// The indices of its accepted providers in the configuration; empty for `auth: none`.
    package let providers: [Int]
    /// The accepted kinds of credentials.
    package let credentials: CredentialKinds
    /// The maximum bytes of a request body; `nil` is unlimited.
    package let bodyLimit: Int?
    /// The same for gRPC, whose calls may be endless streams: only a limit that the route itself sets.
    package let streamLimit: Int?
    /// Whether the client's credential is forwarded to the upstream.
    package let forwardsCredentials: Bool
    /// The names of `headers.remove`.
    package let removeNames: FieldNameSet
    /// The allowed upgrades, and what happens to long exchanges when their credential expires.
    package let upgrade: UpgradeConfiguration
    package let policy: Policy
    /// The index of its headers in ``RouteTable/injections``; routes with equal headers share one.
    package let injection: Int
    let pattern: RoutePattern
    /// Normalized, without a trailing slash; empty if nothing is stripped.
    let stripPrefix: [UInt8]
    /// How the target changes beyond a stripped prefix.
    package let rewrite: TargetRewrite?
    /// The `Host` that its upstream gets instead of that of the upstream's rule.
    package let host: String?
    /// Headers of its responses that are set and removed.
    package let responseHeaders: ResponseHeaderConfiguration
    /// Which pages of other origins may use it; `nil` leaves that to its upstream.
    package let crossOrigin: CrossOriginConfiguration?
    /// How long a request may take until the response's head; `nil` is unlimited.
    package let timeout: Duration?

    /// Whether it depends on more of a request than its method, its host and its path.
    package var isConditional: Bool { !pattern.conditions.isEmpty }

    /// Whether it serves checks alone: the gateway has nothing to respond with to a request itself.
    package var servesChecksOnly: Bool { upstream < 0 && mount < 0 && response == nil }

    /// Whether ``rewrite(path:)`` can change a path.
    package var stripsPrefix: Bool { !stripPrefix.isEmpty }

    /// Removes the prefix from a path if its segments are the first whole segments of the path.
    ///
    /// - Parameter path: normalized.
    package func rewrite(path: Span<UInt8>) -> PathRewrite { PathRewrite.of(path, stripping: stripPrefix.span) }
}
