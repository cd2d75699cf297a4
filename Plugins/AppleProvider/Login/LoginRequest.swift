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
        // In Swift, and so in most bridges, the members have the names that come second.
        guard let token = try Self.secret(form, "identity_token", "identityToken") else {
            throw form.missing("identity_token")
        }
        // A copy, because both owners wipe what they hold.
        identityToken = token.withBytes { Credential(bearer: $0.map(\.self)) }
        let code = try Self.secret(form, "authorization_code", "authorizationCode")
        authorizationCode = code.flatMap { $0.count == 0 ? nil : $0 }
        nonce = try Self.nonEmpty(form.text("nonce"))
        let member = try form.object("full_name") == nil ? "fullName" : "full_name"
        let name = try form.object(member).map { (object) throws(AuthenticationError) in
            try Self.name(in: object, at: member)
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

    /// The first of two members that is there.
    private static func secret(
        _ form: SignInForm, _ name: String, _ other: String
    ) throws(AuthenticationError) -> Secret? {
        if let secret = try form.secret(name) { return secret }
        return try form.secret(other)
    }

    private static func nonEmpty(_ text: String?) -> String? { text?.isEmpty == true ? nil : text }

    /// Reads `{"name":{"firstName":…,"lastName":…},"email":…}`; the email is unverified and ignored.
    /// - Throws: `malformed` for anything else.
    static func nameOfWebUser(_ text: String) throws(AuthenticationError) -> String? {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: maximumUserBytes)
        guard let user = (try? JSON.parse(Array(text.utf8), limits: limits))?.object else { throw badUser }
        switch user["name"] {
        case nil, .null: return nil
        case .object(let name): return try self.name(in: name, ["firstName"], ["lastName"]) { _ in ["user"] }
        default: throw badUser
        }
    }

    private static let badUser = AuthenticationError.malformed(
        .signInBadMember,
        BodyError("user", .invalid, detail: "`user` is not the JSON that Apple sends."))

    private static let givenNames = ["given_name", "givenName"]
    private static let familyNames = ["family_name", "familyName"]
    /// The other members of a name in Swift (`PersonNameComponents`), which are not kept.
    private static let otherNames: Set<String> = [
        "name_prefix", "namePrefix", "middle_name", "middleName", "name_suffix", "nameSuffix", "nickname",
        "phonetic_representation", "phoneticRepresentation",
    ]

    /// Reads the object of an app.
    /// - Throws: `malformed` for a name that would be lost, because its member is none that is known: Apple sends a
    ///   name once.
    private static func name(in object: JSONObject, at member: String) throws(AuthenticationError) -> String? {
        let hasBoth = [givenNames, familyNames].allSatisfy { names in names.contains(where: object.has) }
        if !hasBoth {
            let known = otherNames.union(givenNames + familyNames)
            let lost = object.members.contains { !known.contains($0.name) && $0.value.string?.isEmpty == false }
            if lost {
                throw .malformed(
                    .signInBadMember,
                    BodyError(
                        [member], .invalid, detail: "A name has the members `given_name` and `family_name`."))
            }
        }
        return try name(in: object, givenNames, familyNames) { [member, $0] }
    }

    private static func name(
        in object: JSONObject, _ given: [String], _ family: [String], at path: (String) -> [String]
    ) throws(AuthenticationError) -> String? {
        var parts: [String] = []
        for names in [given, family] {
            let member = names.first { object[$0] != nil && object[$0] != .null } ?? ""
            switch object[member] {
            case nil, .null: break
            case .string(let text): parts.append(text)
            default: throw .malformed(.signInBadMember, BodyError(path(member), .unknownType))
            }
        }
        return DisplayName.clean(parts)
    }
}
