internal import MartletCore
internal import MartletCrypto
private import MartletJSON
internal import MartletProvider

/// Encrypts the outcome of a code exchange with a key derived from the code.
struct OutcomeSeal: Sendable {
    private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: 64 * 1024)
    private static let purpose = Array("martlet wechat outcome".utf8)

    private let key: Secret
    private let binding: [UInt8]

    /// - Parameters:
    ///   - code: the code that the key is derived from.
    ///   - binding: the store key that a sealed outcome is bound to.
    init(code: Secret, binding: String) {
        key = HKDFSHA256.derive(from: code, salt: [], purpose: Self.purpose, length: AES256GCM.keyLength)
        self.binding = Array(binding.utf8)
    }

    /// - Throws: when the system has no random bytes.
    func seal(_ outcome: Result<SignIn, AuthenticationError>) throws(CryptoError) -> [UInt8] {
        try AES256GCM.seal(JSON.write(Self.write(outcome)), with: key, context: binding)
    }

    /// - Returns: `nil` for anything that was not sealed with this key and binding.
    func open(_ sealed: [UInt8]) -> Result<SignIn, AuthenticationError>? {
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
            return [
                "subject": .string(identity.providerSubject), "issuer": .string(identity.issuer),
                "claims": .object(identity.claims), "auth_time": .integer(identity.authTime.seconds),
                "issued_at": .integer(identity.issuedAt.seconds), "expires_at": .integer(identity.expiresAt.seconds),
                "aliases": .array(signIn.aliases.map { .string($0) }),
            ]
        case .failure(let error):
            let wait = error.retryAfter.map { JSONValue.integer($0.wholeMilliseconds) }
            return [
                "code": .string(error.code.rawValue), "disposition": .string(name(of: error.disposition)),
                "retry_after": wait ?? .null,
            ]
        }
    }

    private static func read(_ object: JSONObject) -> Result<SignIn, AuthenticationError>? {
        if let code = object["code"]?.string {
            guard let disposition = disposition(named: object["disposition"]?.string) else { return nil }
            let wait = object["retry_after"]?.int64.map { Duration.milliseconds($0) }
            return .failure(AuthenticationError(ErrorCode(rawValue: code), disposition, retryAfter: wait))
        }
        guard let subject = object["subject"]?.string, let issuer = object["issuer"]?.string,
            let claims = object["claims"]?.object, let authTime = object["auth_time"]?.int64,
            let issuedAt = object["issued_at"]?.int64, let expiresAt = object["expires_at"]?.int64
        else { return nil }
        let identity = Identity(
            providerSubject: subject, issuer: issuer, claims: claims, authTime: UnixTime(seconds: authTime),
            issuedAt: UnixTime(seconds: issuedAt), expiresAt: UnixTime(seconds: expiresAt))
        return .success(SignIn(identity: identity, aliases: (object["aliases"]?.array ?? []).compactMap(\.string)))
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
