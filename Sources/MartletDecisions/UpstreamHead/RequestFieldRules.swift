/// Header rules of the route and of the request.
@usableFromInline package struct RequestFieldRules: OptionSet, Sendable {
    @usableFromInline package let rawValue: UInt8

    @inlinable package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The connection's peer is in `trusted_proxies`.
    @inlinable package static var isTrusted: RequestFieldRules { RequestFieldRules(rawValue: 1) }
    /// The client's connection uses TLS.
    @inlinable package static var isSecure: RequestFieldRules { RequestFieldRules(rawValue: 2) }
    /// The gateway consumed `Authorization`.
    @inlinable package static var dropsAuthorization: RequestFieldRules { RequestFieldRules(rawValue: 4) }
    /// The route forwards credentials, the gateway's own tokens included.
    @inlinable package static var keepsOwnTokens: RequestFieldRules { RequestFieldRules(rawValue: 8) }
    @inlinable package static var keepsExpect: RequestFieldRules { RequestFieldRules(rawValue: 16) }
    /// The route removes further names.
    @inlinable package static var hasRemovals: RequestFieldRules { RequestFieldRules(rawValue: 32) }
    /// `Host` is forwarded unchanged, if it has the usual spacing.
    @inlinable package static var keepsHost: RequestFieldRules { RequestFieldRules(rawValue: 64) }
    /// The request has cookies of the gateway, which are cut out of its `Cookie` fields.
    @inlinable package static var cutsCookies: RequestFieldRules { RequestFieldRules(rawValue: 128) }
}
