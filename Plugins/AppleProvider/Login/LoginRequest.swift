internal import MartletCore
private import MartletJSON
internal import MartletProvider

/// The members of a login's body; an empty string counts as absent, because forms send their empty fields.
struct LoginRequest {
    /// The longest `user` that is parsed as JSON, in bytes.
    static let maximumUserBytes = 4 * 1024

    let identityToken: Credential
    let authorizationCode: Secret?
    /// The user's id as the app knows it; unverified.
    let user: String?
    /// The raw nonce, not hashed.
    let nonce: String?
    /// Unverified, so for display only; Apple sends it once.
    let name: String?

    /// - Throws: `malformed` for members that are missing or of the wrong type.
    init(_ form: SignInForm) throws(AuthenticationError) {
        // A copy, because both owners wipe what they hold.
        identityToken = try form.requiredSecret("identity_token").withBytes { token in
            Credential(bearer: token.map(\.self))
        }
        let code = try form.secret("authorization_code")
        authorizationCode = code.flatMap { $0.count == 0 ? nil : $0 }
        nonce = try Self.nonEmpty(form.text("nonce"))
        let name = try form.object("full_name").map { (object) throws(AuthenticationError) in
            try Self.name(in: object, "given_name", "family_name") { ["full_name", $0] }
        }
        let user = try Self.nonEmpty(form.text("user"))
        // Apple's web flow posts `user` as JSON.
        guard form.isForm, let user, user.utf8.first == UInt8(ascii: "{") else {
            self.user = user
            self.name = name ?? nil
            return
        }
        self.user = nil
        self.name = try Self.nameOfWebUser(user)
    }

    private static func nonEmpty(_ text: String?) -> String? { text?.isEmpty == true ? nil : text }

    /// Reads `{"name":{"firstName":…,"lastName":…},"email":…}`; the email is unverified and ignored.
    /// - Throws: `malformed` for anything else.
    static func nameOfWebUser(_ text: String) throws(AuthenticationError) -> String? {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: maximumUserBytes)
        guard let user = (try? JSON.parse(Array(text.utf8), limits: limits))?.object else {
            throw badUser
        }
        switch user["name"] {
        case nil, .null: return nil
        case .object(let name): return try self.name(in: name, "firstName", "lastName") { _ in ["user"] }
        default: throw badUser
        }
    }

    private static let badUser = AuthenticationError.malformed(
        .signInBadMember,
        BodyError("user", .invalid, detail: "`user` is not the JSON that Apple sends."))

    private static func name(
        in object: JSONObject, _ given: String, _ family: String, at path: (String) -> [String]
    ) throws(AuthenticationError) -> String? {
        var parts: [String] = []
        for member in [given, family] {
            switch object[member] {
            case nil, .null: break
            case .string(let text): parts.append(text)
            default: throw .malformed(.signInBadMember, BodyError(path(member), .unknownType))
            }
        }
        return DisplayName.clean(parts)
    }
}
