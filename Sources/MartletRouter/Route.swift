package import MartletConfig
package import MartletHTTP

/// One compiled route: what it takes, whom it lets in, what it sends on and where to.
package struct Route: Sendable {
    /// Whether a caller must prove who they are.
    package enum Mode: Sendable {
        /// Credentials are neither asked for nor looked at.
        case none
        /// No principal, no entry.
        case required
        /// A good credential makes a principal, none is fine, a bad one is still refused.
        case optional
    }

    /// Its place in the table, which is file order.
    package let index: Int
    package let name: String
    /// Its upstream's place among the configured ones; −1 for a mount.
    package let upstream: Int
    /// The place, among the mounts, of what answers in this process; −1 where an upstream does.
    package let mount: Int
    package let mode: Mode
    /// The places, among the configured providers, of those that may vouch here; empty for `auth: none`.
    package let providers: [Int]
    /// What a caller may present.
    package let credentials: CredentialKinds
    /// The most bytes that a request's body may have; `nil` is unlimited.
    package let bodyLimit: Int?
    /// The same for gRPC, whose calls may be streams without an end: only a limit of the route's own.
    package let streamLimit: Int?
    /// Whether the upstream sees the client's credential.
    package let forwardsCredentials: Bool
    /// The names of `headers.remove`.
    package let removeNames: FieldNameSet
    /// What a request may upgrade to, and what becomes of long exchanges when their credential ends.
    package let upgrade: UpgradeConfiguration
    package let policy: Policy
    /// The place of its header templates in ``RouteTable/injections``; routes that write the same headers share one.
    package let injection: Int
    let pattern: RoutePattern
    /// Normalised, without a final slash; empty where nothing is stripped.
    let stripPrefix: [UInt8]

    /// Whether ``rewrite(path:)`` does anything.
    package var stripsPrefix: Bool { !stripPrefix.isEmpty }

    /// What becomes of a path: the prefix goes when its segments are the path's first whole segments, else nothing does.
    ///
    /// - Parameter path: normalised.
    package func rewrite(path: Span<UInt8>) -> PathRewrite {
        let prefix = stripPrefix.span
        guard prefix.count > 0, path.count >= prefix.count else { return .unchanged }
        var index = 0
        while index < prefix.count {
            if prefix[index] != path[index] { return .unchanged }
            index &+= 1
        }
        if path.count == prefix.count { return PathRewrite(strippedBytes: prefix.count, becomesRoot: true) }
        guard path[prefix.count] == .slash else { return .unchanged }
        return PathRewrite(strippedBytes: prefix.count, becomesRoot: false)
    }
}
