internal import MartletBrowser
internal import MartletCore
internal import MartletCrypto
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder

/// The codes that apps exchange for tokens (RFC 8252, RFC 7636).
///
/// The store has the sealed identity under a digest of the code; the key is derived from the code, so that a reader of
/// the store has neither. A code is used up by its first exchange, whatever the outcome.
struct AppCodes: Sendable {
    private static let purpose = "martlet browser code 1"
    private static let maximumBytes = 64 * 1024

    private let store: any SharedStoring
    private let keyPrefix: String

    /// - Parameter owner: the client's network.
    init(_ setup: SignInSetup, for owner: WorkOwner) {
        store = setup.store.partition(.browsers, for: owner)
        keyPrefix = setup.storeKeyPrefix
    }

    /// A code for an authenticated identity.
    /// - Throws: 503 if the store is unavailable.
    func issue(for new: NewSession, _ app: AppRequest) async throws(Failure) -> OneTimeCode {
        let code = try random(OneTimeCode())
        let record = JSON.write(Self.record(of: new, app.challenge))
        let sealed = try random(AES256GCM.seal(record, with: Self.key(of: code), context: context(of: code)))
        try await fromStore(await store.set(sealed, for: storeKey(of: code), lifetime: OneTimeCode.lifetime))
        return code
    }

    /// The identity of a code, which is used up.
    /// - Throws: 401 for a code that is not valid, or that belongs to another verifier; 503.
    func redeem(_ text: String, verifier: String) async throws(Failure) -> NewSession {
        guard let code = OneTimeCode(text) else { throw .credentialInvalid(.signInBadCode) }
        let sealed: [UInt8]
        switch await store.take(storeKey(of: code)) {
        case .found(let bytes): sealed = bytes
        case .miss: throw .credentialInvalid(.signInBadCode)
        case .unavailable(let error): throw .store(error)
        }
        guard let record = AES256GCM.open(sealed, with: Self.key(of: code), context: context(of: code)),
            let (new, challenge) = record.withBytes({ Self.read($0) }), challenge.matches(verifier)
        else { throw .credentialInvalid(.signInBadCode) }
        return new
    }

    private func storeKey(of code: OneTimeCode) -> String { "\(keyPrefix)browser:code:\(code.storeKey)" }

    private func context(of code: OneTimeCode) -> [UInt8] { Array(storeKey(of: code).utf8) }

    private static func key(of code: OneTimeCode) -> Secret {
        HKDFSHA256.derive(
            from: Secret(Array(code.text.utf8)), salt: [], purpose: Array(purpose.utf8), length: AES256GCM.keyLength)
    }

    private static func record(of new: NewSession, _ challenge: CodeChallenge) -> JSONObject {
        var record: JSONObject = [
            "sub": .string(new.subject), "provider": .string(new.provider),
            "provider_sub": .string(new.identity.providerSubject), "iss": .string(new.identity.issuer),
            "claims": .object(new.identity.claims), "auth_time": .integer(new.identity.authTime.seconds),
            "issued_at": .integer(new.identity.issuedAt.seconds),
            "expires_at": .integer(new.identity.expiresAt.seconds), "needs_claims": .bool(new.needsClaims),
            "start": .integer(Int64(new.start.number)), "challenge": .string(challenge.text),
        ]
        record["is_new"] = new.isNewAccount.map { .bool($0) }
        return record
    }

    private static func read(_ bytes: [UInt8]) -> (NewSession, CodeChallenge)? {
        let limits = JSONLimits(maximumDepth: 64, maximumBytes: maximumBytes)
        guard let record = try? JSON.parse(bytes, limits: limits).object,
            let subject = record["sub"]?.string, let provider = record["provider"]?.string,
            let providerSubject = record["provider_sub"]?.string, let issuer = record["iss"]?.string,
            let claims = record["claims"]?.object, let authTime = record["auth_time"]?.int64,
            let issuedAt = record["issued_at"]?.int64, let expiresAt = record["expires_at"]?.int64,
            let start = record["start"]?.int64.flatMap({ Int(exactly: $0) }),
            let challenge = try? CodeChallenge(record["challenge"]?.string, method: nil)
        else { return nil }
        let identity = Identity(
            providerSubject: providerSubject, issuer: issuer, claims: claims, authTime: UnixTime(seconds: authTime),
            issuedAt: UnixTime(seconds: issuedAt), expiresAt: UnixTime(seconds: expiresAt))
        let new = NewSession(
            subject: subject, provider: provider, identity: identity, isNewAccount: record["is_new"]?.bool,
            needsClaims: record["needs_claims"]?.bool ?? true, start: LoginFence.Start(number: start))
        return (new, challenge)
    }
}
