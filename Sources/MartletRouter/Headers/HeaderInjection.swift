import MartletConfig
package import MartletCore
internal import MartletJSON
package import MartletProvider

/// The headers that a route adds to what its upstream gets: `headers.set`.
///
/// Rendering depends on the principal and this set alone, so the block may be kept for as long as the principal is.
package struct HeaderInjection: Sendable {
    /// Longer values are left out.
    package static let maximumValueBytes = 8_192

    /// What a header set is known by: routes with the same share one.
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

    /// Its place in ``RouteTable/injections``.
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
    /// Without a principal only `attribute: route` and headers with a `default` have one. A value never holds anything
    /// but printable ASCII; one that cannot be written so, or is too long, is left out.
    ///
    /// - Returns: the headers that had a value which could not be written.
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

    /// The claims that the headers are made of, by their own names and each once.
    ///
    /// As the provider has them: what an encoding or a length keeps out of a header is here all the same.
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

/// A header that was left out although there was a value for it.
package struct DroppedHeader: Sendable, Equatable {
    package let name: String
    /// One of the `header.` codes.
    package let reason: ErrorCode
}
