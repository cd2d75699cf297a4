/// What the gateway sends itself for the requests of a route, instead of forwarding them.
@frozen package enum RouteResponseConfiguration: Sendable {
    case redirect(RedirectConfiguration)
    case fixed(FixedResponseConfiguration)
}

/// `redirect:` of a route.
@frozen package struct RedirectConfiguration: Sendable {
    /// The statuses of redirects that a client follows by itself.
    package static let statuses = [301, 302, 303, 307, 308]

    package var target: Located<String>
    package var status = 307

    package init(target: Located<String>) { self.target = target }
}

/// `respond:` of a route.
@frozen package struct FixedResponseConfiguration: Sendable {
    package var status = 200
    package var body: [UInt8] = []
    /// `nil` without a body.
    package var contentType: String?

    package init() {}
}
