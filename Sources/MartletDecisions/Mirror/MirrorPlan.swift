internal import MartletConfig
package import MartletHTTP
package import MartletRouter
package import MartletUpstreams

/// What is copied of a route's requests, and for which upstream.
package final class MirrorPlan: Sendable {
    /// What of a request decides whether it is copied.
    package struct Candidate {
        /// It asks for another protocol.
        package let isUpgrade: Bool
        /// Its body may be an endless stream of messages.
        package let isGRPC: Bool
        package let framing: BodyFraming

        package init(isUpgrade: Bool, isGRPC: Bool, framing: BodyFraming) {
            self.isUpgrade = isUpgrade
            self.isGRPC = isGRPC
            self.framing = framing
        }
    }

    package let upstream: String
    package let fields: MirrorFields
    private let mirror: RouteMirror
    /// `Host` of the copies; `nil` for the client's or the endpoint's.
    private let fixedHost: [UInt8]?
    private let keepsHost: Bool

    /// - Parameters:
    ///   - upstreams: those that routes refer to by index.
    ///   - credentials: names of fields that are credentials on some route.
    /// - Returns: `nil` where no request of the route is copied.
    package init?(_ route: Route, _ upstreams: [Upstream], credentials: [String]) {
        guard let mirror = route.mirror, mirror.percentage.millionths > 0, upstreams.indices.contains(mirror.upstream)
        else { return nil }
        self.mirror = mirror
        let target = upstreams[mirror.upstream]
        upstream = target.name
        fields = MirrorFields(dropping: credentials, mark: RouteMirror.fieldName)
        keepsHost = route.host == nil && target.host == .keep
        if let host = route.host {
            fixedHost = Array(host.utf8)
        } else if case .fixed(let host) = target.host {
            fixedHost = Array(host.utf8)
        } else {
            fixedHost = nil
        }
    }

    /// Whether a request is copied.
    /// - Parameter random: any number is as likely as any other.
    package func includes(_ candidate: Candidate, random: UInt64) -> Bool {
        if candidate.isUpgrade || candidate.isGRPC { return false }
        if case .length(let count) = candidate.framing, count > MirrorRequest.maximumBodyBytes { return false }
        return mirror.includes(random)
    }

    /// `Host` of a copy; `nil` for the endpoint's name.
    /// - Parameter authority: what the client sent.
    package func host(authority: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        keepsHost && !authority.isEmpty ? unsafe Array(authority) : fixedHost
    }
}
