import MartletConfig
package import MartletCore
internal import MartletJSON
package import MartletProvider

/// The headers that a route adds for its upstream: `headers.set`.
///
/// The rendered block depends only on the principal and this set, so it can be cached together with the principal.
package struct HeaderInjection: Sendable {
    /// Longer values are omitted.
    package static let maximumValueBytes = 8_192

    /// The identity of a header set: routes with equal keys share one.
    struct Key: Hashable {
        private let parts: [String]

        init(headers: [HeaderConfiguration]?, route: String) {
            guard let headers else {
                parts = []
                return
            }
            var parts = ["set"]
            for header in headers {
                parts.append(header.name.value)
                switch header.value {
                // The one value that depends on the route.
                case .attribute(.route): parts += ["route", route]
                case .attribute(let attribute): parts += ["attribute", attribute.rawValue]
                case .claim(let claim): parts += ["claim", claim]
                }
                parts.append(header.encoding.rawValue)
                parts += header.join.map { ["join", $0] } ?? ["-"]
                parts += header.fallback.map { ["default", $0] } ?? ["-"]
            }
            self.parts = parts
        }
    }

    /// The headers of the default set.
    static let defaultNames = ["X-Auth-Subject", "X-Auth-Provider", "X-Auth-Email"]

    /// Its index in ``RouteTable/injections``.
    package let id: Int
    private let templates: [HeaderTemplate]

    /// - Parameter headers: `nil` for the default set.
    init(id: Int, headers: [HeaderConfiguration]?, route: String) {
        self.id = id
        templates =
            headers.map { $0.map { HeaderTemplate($0, route: route) } } ?? [
                HeaderTemplate("X-Auth-Subject", .attribute(.subject)),
                HeaderTemplate("X-Auth-Provider", .attribute(.provider)),
                HeaderTemplate("X-Auth-Email", .verifiedEmail),
            ]
    }

    /// Appends one `Name: value` line with CRLF for each header that has a value.
    ///
    /// Without a principal only `attribute: route` and headers with a `default` have one. A value contains only
    /// printable ASCII; a header whose value cannot be encoded or is too long is omitted.
    ///
    /// - Returns: the headers that were omitted although they had a value.
    @discardableResult
    package func render(_ principal: Principal?, into buffer: inout ByteBuffer) -> [DroppedHeader] {
        var dropped: [DroppedHeader] = []
        for template in templates {
            if let reason = template.render(principal, into: &buffer) {
                dropped.append(DroppedHeader(name: template.name, reason: reason))
            }
        }
        return dropped
    }

    /// The claims of the headers, by their own names and without duplicates.
    ///
    /// They are not encoded and include claims whose header is omitted.
    func claims(of principal: Principal) -> [(name: String, value: JSONValue)] {
        var claims: [(name: String, value: JSONValue)] = []
        for template in templates {
            guard let claim = template.claim(of: principal), !claims.contains(where: { $0.name == claim.name }) else {
                continue
            }
            claims.append(claim)
        }
        return claims
    }
}

/// A header that was omitted although it had a value.
package struct DroppedHeader: Sendable, Equatable {
    package let name: String
    /// One of the `header.` codes.
    package let reason: ErrorCode
}
