public import MartletCore
public import MartletCrypto
private import MartletJSON

/// Encrypts the outcome of a login with a key derived from a proof that can be used once, so that an identical login
/// gets it again.
public struct OutcomeSeal: Sendable {
    private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: 64 * 1024)

    private let key: Secret
    private let binding: [UInt8]

    /// - Parameters:
    ///   - proof: what only the sender of the login knows, such as a code.
    ///   - purpose: distinguishes this key from others that are derived from the proof.
    ///   - binding: the store key that a sealed outcome is bound to.
    public init(proof: Secret, purpose: String, binding: String) {
        key = HKDFSHA256.derive(from: proof, salt: [], purpose: Array(purpose.utf8), length: AES256GCM.keyLength)
        self.binding = Array(binding.utf8)
    }

    /// Encrypts an outcome; its ``SignIn/repetition`` and what causes an error are left out.
    /// - Throws: when the system has no random bytes.
    public func seal(_ outcome: Result<SignIn, AuthenticationError>) throws(CryptoError) -> [UInt8] {
        try AES256GCM.seal(JSON.write(Self.write(outcome)), with: key, context: binding)
    }

    /// - Returns: `nil` for anything that was not sealed with this key and binding.
    public func open(_ sealed: [UInt8]) -> Result<SignIn, AuthenticationError>? {
        let value = AES256GCM.open(sealed, with: key, context: binding)?.withBytes {
            try? JSON.parse($0, limits: Self.limits)
        }
        return value.flatMap(\.object).flatMap(Self.read)
    }

    // MARK: Encoding

    private static func write(_ outcome: Result<SignIn, AuthenticationError>) -> JSONObject {
        switch outcome {
        case .success(let signIn):
            let identity = signIn.identity
            var object: JSONObject = [
                "subject": .string(identity.providerSubject), "issuer": .string(identity.issuer),
                "claims": .object(identity.claims), "auth_time": .integer(identity.authTime.seconds),
                "issued_at": .integer(identity.issuedAt.seconds), "expires_at": .integer(identity.expiresAt.seconds),
                "aliases": .array(signIn.aliases.map { .string($0) }), "kept": .object(signIn.storedClaims),
                "aliases_decide": .bool(signIn.aliasesDecide),
            ]
            if let grant = signIn.grant {
                let token = grant.token.withBytes { String(decoding: $0, as: UTF8.self) }
                object["grant"] = .object(["client": .string(grant.client), "token": .string(token)])
            }
            if let error = signIn.unlessKnown { object["unless_known"] = .object(write(error)) }
            return object
        case .failure(let error): return write(error)
        }
    }

    private static func write(_ error: AuthenticationError) -> JSONObject {
        let wait = error.retryAfter.map { JSONValue.integer($0.wholeMilliseconds) }
        return [
            "code": .string(error.code.rawValue), "disposition": .string(name(of: error.disposition)),
            "retry_after": wait ?? .null,
        ]
    }

    private static func read(_ object: JSONObject) -> Result<SignIn, AuthenticationError>? {
        if object.has("code") { return error(object).map { .failure($0) } }
        guard let subject = object["subject"]?.string, let issuer = object["issuer"]?.string,
            let claims = object["claims"]?.object, let authTime = object["auth_time"]?.int64,
            let issuedAt = object["issued_at"]?.int64, let expiresAt = object["expires_at"]?.int64
        else { return nil }
        let identity = Identity(
            providerSubject: subject, issuer: issuer, claims: claims, authTime: UnixTime(seconds: authTime),
            issuedAt: UnixTime(seconds: issuedAt), expiresAt: UnixTime(seconds: expiresAt))
        var grant: ProviderGrant?
        if let object = object["grant"]?.object, let client = object["client"]?.string,
            let token = object["token"]?.string
        {
            grant = ProviderGrant(client: client, token: Secret(token))
        }
        return .success(
            SignIn(
                identity: identity, aliases: (object["aliases"]?.array ?? []).compactMap(\.string),
                storedClaims: object["kept"]?.object ?? [:], grant: grant,
                aliasesDecide: object["aliases_decide"] == true,
                unlessKnown: object["unless_known"]?.object.flatMap(error)))
    }

    private static func error(_ object: JSONObject) -> AuthenticationError? {
        guard let code = object["code"]?.string, let disposition = disposition(named: object["disposition"]?.string)
        else { return nil }
        let wait = object["retry_after"]?.int64.map { Duration.milliseconds($0) }
        return AuthenticationError(ErrorCode(rawValue: code), disposition, retryAfter: wait)
    }

    private static let dispositions: [(AuthenticationError.Disposition, String)] = [
        (.rejected, "rejected"), (.denied, "denied"), (.unavailable, "unavailable"), (.malformed, "malformed"),
        (.throttled, "throttled"), (.notFound, "not_found"),
    ]

    private static func name(of disposition: AuthenticationError.Disposition) -> String {
        dispositions.first { $0.0 == disposition }?.1 ?? "unavailable"
    }

    private static func disposition(named name: String?) -> AuthenticationError.Disposition? {
        dispositions.first { $0.1 == name }?.0
    }
}
