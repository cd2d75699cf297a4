/// Header rules of the route and of the request.
struct RequestFieldRules: OptionSet, Sendable {
    let rawValue: UInt8

    /// The connection's peer is in `trusted_proxies`.
    static let isTrusted = RequestFieldRules(rawValue: 1)
    /// The client's connection uses TLS.
    static let isSecure = RequestFieldRules(rawValue: 2)
    /// The gateway consumed `Authorization`.
    static let dropsAuthorization = RequestFieldRules(rawValue: 4)
    /// The route forwards credentials, the gateway's own tokens included.
    static let keepsOwnTokens = RequestFieldRules(rawValue: 8)
    static let keepsExpect = RequestFieldRules(rawValue: 16)
    /// The route removes further names.
    static let hasRemovals = RequestFieldRules(rawValue: 32)
    /// `Host` is forwarded unchanged, if it has the usual spacing.
    static let keepsHost = RequestFieldRules(rawValue: 64)
    /// The request has cookies of the gateway, which are cut out of its `Cookie` fields.
    static let cutsCookies = RequestFieldRules(rawValue: 128)
}
