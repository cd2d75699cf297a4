package import MartletHTTP

/// Whether a request that is authenticated by a cookie comes from a page of this site.
///
/// Browsers send cookies along with requests that other sites cause. Where such a request could change something, a
/// field that scripts cannot set has to show where it comes from: `Sec-Fetch-Site`, or `Origin`.
package struct CrossSiteRule: Sendable {
    /// What `Sec-Fetch-Site` states.
    package enum Site: Sendable, CaseIterable {
        case absent
        /// A page of the origin that the request is for.
        case sameOrigin
        /// The user: an address that was entered, or a bookmark.
        case none
        /// Another page, or an unknown value.
        case other
        case repeated
    }

    /// What `Origin` states.
    package enum Source: Sendable, CaseIterable {
        case absent
        /// The gateway's origin, or one that the route accepts.
        case accepted
        case other
        case repeated
    }

    private let origin: String

    /// - Parameter origin: the public origin of this gateway, as browsers write it.
    package init(origin: String) { self.origin = origin }

    /// The decision: `nil` if the request is accepted, else `cross_site` (403) or `browser.origin_repeated` (400).
    /// - Parameters:
    ///   - hasCookie: whether the request has a session's cookie; without one the rule does not apply.
    ///   - isSafe: whether the method is GET, HEAD or OPTIONS.
    ///   - isWebSocket: whether it opens a WebSocket, for which `Origin` alone counts: its method is a safe one, and
    ///     scripts of any page can read what it returns.
    package static func rejection(
        hasCookie: Bool, isSafe: Bool, isWebSocket: Bool, site: Site, source: Source
    ) -> BrowserError? {
        guard hasCookie else { return nil }
        if site == .repeated || source == .repeated { return .originRepeated }
        if source == .accepted { return nil }
        if isWebSocket { return .crossSite }
        if isSafe || site == .sameOrigin || site == .none { return nil }
        return .crossSite
    }

    /// Checks the head of a request that has a session's cookie.
    /// - Parameters:
    ///   - origins: further origins that the route accepts (`cors.origins`).
    /// - Throws: `cross_site`, `browser.origin_repeated`.
    package func check(
        _ bytes: Span<UInt8>, _ fields: borrowing FieldList, method: Method, isWebSocket: Bool,
        origins: @autoclosure () -> [String]
    ) throws(BrowserError) {
        let site = Self.site(fields.occurrence(of: "sec-fetch-site", in: bytes), in: bytes)
        let source = source(fields.occurrence(of: "origin", in: bytes), in: bytes, origins())
        let isSafe = method == .get || method == .head || method == .options
        if let error = Self.rejection(
            hasCookie: true, isSafe: isSafe, isWebSocket: isWebSocket, site: site, source: source)
        {
            throw error
        }
    }

    /// Whether a head has one of the fields with which browsers say where a request comes from.
    package static func isFromBrowser(_ bytes: Span<UInt8>, _ fields: borrowing FieldList) -> Bool {
        for index in 0..<fields.count {
            let field = fields[index]
            if field.isNamed("origin", in: bytes) || field.isNamed("sec-fetch-site", in: bytes) { return true }
        }
        return false
    }

    /// Checks the head of a request whose credential is a client certificate: a browser sends that, like a cookie, with
    /// requests that other sites cause.
    ///
    /// Programs send neither field, so that their requests are accepted.
    /// - Parameters:
    ///   - authority: host and port as the client sees them.
    ///   - origins: further origins that the route accepts.
    /// - Throws: `cross_site`, `browser.origin_repeated`.
    package static func checkCertificate(
        _ bytes: Span<UInt8>, _ fields: borrowing FieldList, method: Method, isWebSocket: Bool, authority: String,
        origins: [String] = []
    ) throws(BrowserError) {
        let site = site(fields.occurrence(of: "sec-fetch-site", in: bytes), in: bytes)
        let source = CrossSiteRule(origin: "https://\(authority)")
            .source(fields.occurrence(of: "origin", in: bytes), in: bytes, origins)
        guard site != .absent || source != .absent else { return }
        let isSafe = method == .get || method == .head || method == .options
        if let error = rejection(
            hasCookie: true, isSafe: isSafe, isWebSocket: isWebSocket, site: site, source: source)
        {
            throw error
        }
    }

    /// Checks a request to one of the gateway's own endpoints that has a session's cookie.
    /// - Throws: `cross_site`, `browser.origin_repeated`.
    package func check(
        method: String, fields: [(name: String, value: String)], origins: [String] = []
    ) throws(BrowserError) {
        let sites = fields.filter { $0.name.lowercased() == "sec-fetch-site" }.map(\.value)
        let sources = fields.filter { $0.name.lowercased() == "origin" }.map(\.value)
        let site: Site = sites.count > 1 ? .repeated : sites.first.map { Self.site(Array($0.utf8).span) } ?? .absent
        let source: Source =
            sources.count > 1
            ? .repeated : sources.first.map { isAccepted(Array($0.utf8).span, origins) ? .accepted : .other } ?? .absent
        let isSafe = ["GET", "HEAD", "OPTIONS"].contains { $0.utf8.elementsEqual(method.utf8) }
        if let error = Self.rejection(hasCookie: true, isSafe: isSafe, isWebSocket: false, site: site, source: source) {
            throw error
        }
    }

    private static func site(_ occurrence: FieldOccurrence, in bytes: Span<UInt8>) -> Site {
        switch occurrence {
        case .absent: .absent
        case .repeated: .repeated
        case .once(let value): site(bytes.extracting(value.bounds))
        }
    }

    private static func site(_ value: Span<UInt8>) -> Site {
        if value.spells("same-origin") { return .sameOrigin }
        return value.spells("none") ? .none : .other
    }

    private func source(
        _ occurrence: FieldOccurrence, in bytes: Span<UInt8>, _ origins: @autoclosure () -> [String]
    ) -> Source {
        switch occurrence {
        case .absent: .absent
        case .repeated: .repeated
        case .once(let value): isAccepted(bytes.extracting(value.bounds), origins()) ? .accepted : .other
        }
    }

    private func isAccepted(_ value: Span<UInt8>, _ origins: [String]) -> Bool {
        if value.spells(origin) { return true }
        for other in origins where value.spells(other) { return true }
        return false
    }
}

extension BrowserError {
    static let crossSite = BrowserError(
        .browserCrossSite, "a credential that browsers send by themselves is used from another site")
    static let originRepeated = BrowserError(.browserOriginRepeated, "Origin or Sec-Fetch-Site is repeated")
}
