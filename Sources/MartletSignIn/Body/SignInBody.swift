internal import MartletCore
internal import MartletJSON
package import MartletProvider
package import MartletResponder

/// The body of a sign-in request: JSON or a form, parsed strictly, with strings read directly into secrets.
package enum SignInBody {
    /// The longest accepted body.
    package static let maximumBytes = 64 * 1024
    /// The most members. A client needs a few; parsing tens of thousands would cost more than most logins.
    private static let maximumMembers = 32
    private static let jsonLimits = JSONLimits(
        maximumDepth: 8, maximumBytes: maximumBytes, maximumValues: 256, maximumMembers: maximumMembers)

    /// The accepted media types.
    private enum MediaType { case json, form }

    /// Parses a request's body.
    /// - Throws: 400, 413 or 415 with a `signin.` or `json.` code.
    static func form(of request: LocalRequest) throws(Failure) -> SignInForm {
        try checkPresence(of: request)
        switch try mediaType(of: request) {
        case .json: return try json(request.body)
        case .form: return try form(request.body)
        }
    }

    /// Parses the body of a request that needs none; `nil` without one.
    static func optionalForm(of request: LocalRequest) throws(Failure) -> SignInForm? {
        request.bodyBytes > 0 ? try form(of: request) : nil
    }

    /// Parses the body of a form that a page sends: `application/x-www-form-urlencoded`.
    static func pageForm(of request: LocalRequest) throws(Failure) -> SignInForm {
        try checkPageForm(of: request)
        return try form(of: request)
    }

    /// - Throws: 415 for a body of another media type than that of a page's form.
    static func checkPageForm(of request: LocalRequest) throws(Failure) {
        guard try mediaType(of: request) == .form else { throw .unsupportedMediaType(.signInMediaType) }
    }

    /// Parses the body of an issuer's notification, whose `Content-Type` is not documented: a form if it says so, and
    /// JSON otherwise.
    static func notification(of request: LocalRequest) throws(Failure) -> SignInForm {
        try checkPresence(of: request)
        let type = request.field("Content-Type")?.lowercased() ?? ""
        return try type.hasPrefix("application/x-www-form-urlencoded") ? form(request.body) : json(request.body)
    }

    /// Parses a JSON object (RFC 8259).
    package static func json(_ bytes: [UInt8]) throws(Failure) -> SignInForm {
        let members: [JSONMember]?
        // Some clients write a byte order mark, which may be ignored (RFC 8259 §8.1).
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        do throws(JSONError) { members = try JSON.members(of: text, limits: jsonLimits) } catch {
            throw .unreadable(error)
        }
        guard let members else {
            throw .malformed(
                .signInNotAnObject, [BodyError([], .unknownType, detail: "The body must be a JSON object.")])
        }
        var texts: [String: Secret] = [:]
        var others: [String: JSONValue] = [:]
        for member in members where isASCII(member.name.utf8) {
            switch member.value {
            case .text(let secret): texts[member.name] = secret
            case .other(let value): others[member.name] = value
            }
        }
        var form = SignInForm(texts: texts, others: others, isForm: false)
        form.hasOtherNames = members.contains { !isASCII($0.name.utf8) }
        return form
    }

    /// Parses `application/x-www-form-urlencoded`.
    package static func form(_ bytes: [UInt8]) throws(Failure) -> SignInForm {
        var names: Set<[UInt8]> = []
        var texts: [String: Secret] = [:]
        for pair in try pairs(of: bytes) {
            guard names.insert(pair.name).inserted else {
                throw .repeated(String(decoding: pair.name, as: UTF8.self))
            }
            if isASCII(pair.name) { texts[String(decoding: pair.name, as: UTF8.self)] = pair.value }
        }
        var form = SignInForm(texts: texts, others: [:], isForm: true)
        form.hasOtherNames = names.contains { !isASCII($0) }
        return form
    }

    private static func pairs(of bytes: [UInt8]) throws(Failure) -> [(name: [UInt8], value: Secret)] {
        var decoder = FormDecoder(bytes)
        do throws(FormDecoder.FormError) { return try decoder.pairs(upTo: maximumMembers) } catch {
            throw .malformed(.signInBadForm, [BodyError([], .malformed, detail: "The form cannot be decoded.")])
        }
    }

    /// Only ASCII names are kept: dictionaries treat some other strings as equal although their bytes differ.
    private static func isASCII(_ name: some Collection<UInt8>) -> Bool { name.allSatisfy { $0 < 0x80 } }

    private static func checkPresence(of request: LocalRequest) throws(Failure) {
        guard request.bodyBytes > 0 else {
            throw .malformed(.signInBodyMissing, [BodyError([], .missing, detail: "There is no body.")])
        }
        guard request.bodyBytes <= maximumBytes, request.body.count == request.bodyBytes else {
            throw .tooLarge(.signInBodyTooLarge)
        }
        guard let encoding = request.field("Content-Encoding") else { return }
        guard encoding.lowercased() == "identity" else { throw .unsupportedMediaType(.signInEncoding) }
    }

    private static func mediaType(of request: LocalRequest) throws(Failure) -> MediaType {
        let values = request.values(of: "content-type")
        guard values.count == 1, let value = values.first else { throw Self.unknownType }
        let parts = value.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
        for parameter in parts.dropFirst() { try check(parameter) }
        switch parts.first?.lowercased() {
        case "application/json": return .json
        case "application/x-www-form-urlencoded": return .form
        default: throw Self.unknownType
        }
    }

    private static let unknownType = Failure.unsupportedMediaType(
        .signInMediaType,
        [BodyError([], .unknownType, detail: "Send the body as JSON, with Content-Type: application/json.")])

    /// Parameters other than `charset` are ignored.
    private static func check(_ parameter: Substring) throws(Failure) {
        let pair = parameter.split(separator: "=", maxSplits: 1).map(trimmed)
        guard let name = pair.first, name.lowercased() == "charset" else { return }
        let charset = (pair.count == 2 ? pair[1] : "").lowercased()
        guard ["utf-8", "\"utf-8\"", "utf8"].contains(charset) else { throw .unsupportedMediaType(.signInEncoding) }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }
}

/// The names of members that responses may contain: those of the endpoints and of the bundled providers.
///
/// Other providers name their own members; names that only the client knows are not echoed.
enum BodyMembers {
    static let known: Set<String> = [
        "identity_token", "authorization_code", "user", "nonce", "full_name", "app", "code", "raw_data", "signature",
        "encrypted_data", "iv", "username", "password", "refresh_token", "current_password", "new_password",
        "device_name", "email", "name", "locale", "provider", "token", "payload", "code_verifier", "grant_type",
        "identityToken", "authorizationCode", "fullName", "phone_code", "replaces",
    ]

    /// The members of a body that contains a credential, whether or not it is complete.
    static let ofCredentials = known.subtracting([
        "device_name", "refresh_token", "current_password", "new_password", "email", "name", "locale", "token",
        "code_verifier", "grant_type", "replaces",
    ])

    /// The path of a member that a response may name, empty for others.
    static func path(_ name: String) -> [String] { known.contains(name) ? [name] : [] }

    /// Claims that providers vouch for (OpenID Connect Core §5.1), which clients may take for a part of a profile.
    private static let claims: Set<String> = [
        "sub", "given_name", "family_name", "middle_name", "nickname", "preferred_username", "profile", "picture",
        "website", "email_verified", "gender", "birthdate", "zoneinfo", "phone_number", "phone_number_verified",
        "address", "updated_at",
    ]

    /// The same for a member that may be a claim.
    static func pathOfClaim(_ name: String) -> [String] { claims.contains(name) ? [name] : path(name) }
}

extension Failure {
    /// A repeated member.
    static func repeated(_ name: String) -> Failure {
        .malformed(.signInRepeatedMember, [BodyError(BodyMembers.path(name), .repeated)])
    }

    /// A body that is not valid JSON, or repeats a member.
    static func unreadable(_ error: JSONError) -> Failure {
        if error.code == .jsonDuplicateName { return .repeated(error.member ?? "") }
        return .malformed(
            error.code,
            [BodyError([], .malformed, detail: "The body is not valid JSON: error at byte \(error.offset).")])
    }

    /// The same failure with a general body error if it has none.
    func describingBody() -> Failure {
        guard status == 400, bodyErrors.isEmpty, reason != .signInBadQuery else { return self }
        return .malformed(reason, [BodyError([], .invalid)])
    }
}
