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
                case .claim(let claim): parts += ["claim", "\(claim.members.count)", claim.name] + claim.members
                case .constant(let text): parts += ["value", text]
                }
                parts.append(header.encoding.rawValue)
                parts += header.join.map { ["join", $0] } ?? ["-"]
                parts += header.fallback.map { ["default", $0] } ?? ["-"]
            }
            self.parts = parts
        }
    }

    /// The headers of the default set.
    package static let defaultNames = ["X-Auth-Subject", "X-Auth-Provider", "X-Auth-Email"]

    /// Its index in ``RouteTable/injections``.
    package let id: Int
    private let templates: [HeaderTemplate]
    /// Those that say nothing about a caller.
    private let constants: [HeaderTemplate]
    /// Whether public routes have headers, too.
    package var hasConstants: Bool { !constants.isEmpty }
    /// The names of the headers, as written in the file.
    package var names: [String] { templates.map(\.name) }

    /// - Parameter headers: `nil` for the default set, which constants do not replace.
    init(id: Int, headers: [HeaderConfiguration]?, route: String) {
        self.id = id
        let own = (headers ?? []).map { HeaderTemplate($0, route: route) }
        let replacesDefaults = headers.map { $0.isEmpty || $0.contains { !$0.isConstant } } ?? false
        constants = own.filter(\.isConstant)
        let defaults = [
            HeaderTemplate("X-Auth-Subject", .attribute(.subject)),
            HeaderTemplate("X-Auth-Provider", .attribute(.provider)),
            HeaderTemplate("X-Auth-Email", .attribute(.email)),
        ]
        let names = Set(own.map { ReservedNames.letters(of: $0.name) })
        templates =
            (replacesDefaults ? [] : defaults.filter { !names.contains(ReservedNames.letters(of: $0.name)) }) + own
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

    /// Appends the lines of constant headers alone, for a route that knows no callers.
    package func renderConstants(into buffer: inout ByteBuffer) {
        for template in constants { _ = template.render(nil, into: &buffer) }
    }

    /// The claims of the headers, by their own names and without duplicates; a member of an object by the names on the
    /// way to it, joined with dots.
    ///
    /// They are not encoded and include claims whose header is omitted. With an address there is always whether it is
    /// verified.
    func claims(of principal: Principal) -> [(name: String, value: JSONValue)] {
        var claims: [(name: String, value: JSONValue)] = []
        for template in templates {
            guard let claim = template.claim(of: principal), !claims.contains(where: { $0.name == claim.name }) else {
                continue
            }
            claims.append(claim)
        }
        if claims.contains(where: { $0.name == "email" }), !claims.contains(where: { $0.name == "email_verified" }) {
            claims.append(("email_verified", .bool(principal.identity.claims["email_verified"] == .bool(true))))
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

extension HeaderConfiguration {
    /// Whether its value is the same for every request.
    var isConstant: Bool { if case .constant = value { true } else { false } }
}
