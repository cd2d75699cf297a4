internal import MartletConfig
internal import MartletCore
private import MartletJSON
private import MartletProvider

/// What an issuer publishes about itself (OpenID Connect Discovery §3), as far as the gateway uses it.
struct DiscoveryDocument: Sendable {
    /// The largest document that is read, in bytes.
    static let maximumBytes = 256 * 1024
    private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: maximumBytes)

    let keysURL: URLText?
    let authorizationURL: URLText?
    let tokenURL: URLText?
    let userInfoURL: URLText?
    /// Whether its responses to browsers name the issuer (RFC 9207 §3).
    let namesIssuerInResponses: Bool

    /// Where the document of an issuer is.
    static func url(of issuer: String) -> String {
        (issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer) + "/.well-known/openid-configuration"
    }

    /// Parses a document and checks that it is the issuer's own.
    ///
    /// - Throws: `oidc.discovery_bad_document` for anything but a JSON object with trustworthy URLs, and
    ///   `oidc.discovery_bad_issuer` for that of another issuer.
    init(_ bytes: [UInt8], of issuer: String) throws(OIDCError) {
        guard let object = (try? JSON.parse(bytes, limits: Self.limits))?.object else {
            throw .unavailable("discovery_bad_document", "the discovery document is not a JSON object")
        }
        try Self.checkIssuer(object["issuer"]?.string, issuer)
        let isLocal = URLText(issuer)?.scheme == "http"
        keysURL = try Self.url("jwks_uri", in: object, isLocal)
        authorizationURL = try Self.url("authorization_endpoint", in: object, isLocal)
        tokenURL = try Self.url("token_endpoint", in: object, isLocal)
        userInfoURL = try Self.url("userinfo_endpoint", in: object, isLocal)
        namesIssuerInResponses = object["authorization_response_iss_parameter_supported"] == true
    }

    private static func checkIssuer(_ named: String?, _ issuer: String) throws(OIDCError) {
        guard let named else { throw .unavailable("discovery_bad_issuer", "the discovery document names no issuer") }
        guard !named.hasSameBytes(as: issuer) else { return }
        let shown = ShownText.make(named)
        let isSlash = named.hasSameBytes(as: issuer + "/") || issuer.hasSameBytes(as: named + "/")
        throw .unavailable(
            "discovery_bad_issuer",
            "the discovery document is of the issuer \(shown), not \(ShownText.make(issuer))"
                + (isSlash ? ": write 'issuer: \(shown)', which differs by the final slash alone" : ""))
    }

    /// An endpoint: https, or a loopback address where the issuer is one; a remote document must not make the gateway
    /// call a service of its own machine.
    private static func url(_ name: String, in object: JSONObject, _ isLocal: Bool) throws(OIDCError) -> URLText? {
        switch object[name] {
        case nil, .null: return nil
        case .string(let text):
            guard let url = URLText(text), url.scheme == "https" || (isLocal && url.isTrustworthy) else {
                throw .unavailable("discovery_bad_document", "\(name) of the discovery document is not an https URL")
            }
            return url
        default: throw .unavailable("discovery_bad_document", "\(name) of the discovery document is not a string")
        }
    }
}
