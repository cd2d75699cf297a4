internal import MartletCore

/// The parameters of `/auth/authorize`, by Apple's rules.
struct AuthorizationRequest {
    /// How the response reaches the redirect URI.
    enum ResponseMode: String {
        case query
        case fragment
        case formPost = "form_post"
    }

    static let names = [
        "client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method",
    ]
    /// The limit on each parameter, so that the claims of a login are never too large for its code.
    private static let maximumBytes = 2048
    /// S256: 32 bytes in base64url.
    private static let challengeLength = 43

    let clientID: String
    let redirectURI: String
    /// Whether the response has an identity token, too.
    let wantsToken: Bool
    let mode: ResponseMode
    let wantsName: Bool
    let wantsEmail: Bool
    let state: String?
    let nonce: String?
    let challenge: String?
    /// The parameters as they came, for the form of the page.
    let parameters: [(name: String, value: String)]

    /// Checks the parameters.
    /// - Throws: an error that the browser shows; none of them is sent to the redirect URI.
    init(_ form: AppleForm) throws(AppleAPIError) {
        for name in Self.names where (form[name]?.utf8.count ?? 0) > Self.maximumBytes {
            throw .invalidRequest("\(name) is too long.")
        }
        clientID = try form.required("client_id")
        redirectURI = try form.required("redirect_uri")
        guard RedirectURI.isValid(redirectURI) else {
            throw AppleAPIError(status: 400, code: "invalid_redirect_uri", text: "Invalid web redirect url.")
        }
        let type = try form.required("response_type")
        guard ["code", "code id_token", "id_token code"].contains(type) else {
            throw AppleAPIError(status: 400, code: "unsupported_response_type", text: "Unsupported response type.")
        }
        wantsToken = type != "code"
        (wantsName, wantsEmail) = try Self.scopes(form["scope"])
        mode = try Self.mode(form["response_mode"], wantsData: wantsName || wantsEmail, wantsToken: wantsToken)
        state = form["state"]
        nonce = form["nonce"]
        challenge = try Self.challenge(form)
        parameters = Self.names.compactMap { name in form[name].map { (name, $0) } }
    }

    /// Rejects a plus sign for a space in a query, which Apple takes literally.
    static func checkSpaces(_ query: String) throws(AppleAPIError) {
        for pair in query.split(separator: "&") where pair.hasPrefix("scope=") || pair.hasPrefix("response_type=") {
            guard !pair.contains("+") else { throw .invalidRequest("A space is %20, not +.") }
        }
    }

    private static func scopes(_ text: String?) throws(AppleAPIError) -> (name: Bool, email: Bool) {
        let scopes = (text ?? "").split(separator: " ", omittingEmptySubsequences: false).map { String($0) }
        guard text == nil || scopes.allSatisfy(["name", "email", "openid"].contains) else { throw .invalidScope }
        return (scopes.contains("name"), scopes.contains("email"))
    }

    private static func mode(_ text: String?, wantsData: Bool, wantsToken: Bool) throws(AppleAPIError) -> ResponseMode {
        guard let mode = ResponseMode(rawValue: text ?? ResponseMode.query.rawValue) else {
            throw .invalidRequest("response_mode is not supported.")
        }
        guard !wantsData || mode == .formPost else {
            throw .invalidRequest("response_mode must be form_post when name or email scope is requested.")
        }
        guard !wantsToken || mode != .query else {
            throw .invalidRequest("response_mode must be fragment or form_post when an id_token is requested.")
        }
        return mode
    }

    private static func challenge(_ form: AppleForm) throws(AppleAPIError) -> String? {
        guard let challenge = form["code_challenge"] else {
            guard form["code_challenge_method"] == nil else { throw .invalidRequest("code_challenge is missing.") }
            return nil
        }
        guard form["code_challenge_method"] == "S256" else {
            throw .invalidRequest("code_challenge_method is not S256.")
        }
        guard challenge.utf8.count == challengeLength, Base64URL.decode(challenge) != nil else {
            throw .invalidRequest("code_challenge is invalid.")
        }
        return challenge
    }
}
