private import MartletConfig
internal import MartletCore

/// The endpoints of the code flow: configured, or discovered.
struct Endpoints {
    let authorization: String
    let token: String
    /// `nil` if there is none.
    let userInfo: String?
    /// Whether a response to a browser must name the issuer (RFC 9207 §2.4).
    let namesIssuerInResponses: Bool
}

extension OIDCProvider {
    /// The endpoints, after a request for the discovery document if one is needed and allowed now.
    /// - Throws: `oidc.discovery_unavailable` if they are not known.
    func endpoints(of web: OIDCWebBlock) async throws(OIDCError) -> Endpoints {
        let document = await discovery?.resolve()
        guard let authorization = web.authorizationURL?.value ?? document?.authorizationURL,
            let token = web.tokenURL?.value ?? document?.tokenURL
        else { throw .unavailable("discovery_unavailable", "the issuer's endpoints are not known") }
        return Endpoints(
            authorization: authorization.text, token: token.text,
            userInfo: (web.userInfoURL?.value ?? document?.userInfoURL)?.text,
            namesIssuerInResponses: document?.namesIssuerInResponses ?? false)
    }
}
