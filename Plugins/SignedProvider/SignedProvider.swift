public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
public import MartletProvider

/// Accepts requests that a partner signed with a key that the configuration names (RFC 9421).
///
/// A signature is of one request, so no decision is reused. The gateway compares the body with the signed digest while
/// it streams.
public struct SignedProvider: LocallyVerifying, RequestInspecting {
    /// The type of the provider's configuration block.
    public typealias Configuration = SignedConfiguration

    public static let kind: ProviderKind = "signed"

    /// The expiry of an identity: what a signature vouches for is one request, however long that takes.
    private static let never = UnixTime(seconds: 253_402_300_799)

    private let keys: [String: SigningKey]
    private let policy: RequestSignaturePolicy
    private let context: ProviderContext

    public init(_ configuration: SignedConfiguration, context: ProviderContext) throws(ConfigurationError) {
        keys = configuration.keys
        policy = configuration.policy
        self.context = context
    }

    public var accepts: [CredentialSource] { [.messageSignature] }
    /// The parts of a request that name it; a signature covers more.
    public var reuseKey: Set<RequestPart> { [.method, .host, .path] }
    public var readsHead: Bool { true }

    /// One signature over some hundred bytes; longer heads are not decided on a loop.
    public var isQuick: Bool { true }

    /// Verifies a signature without a nonce in a short head; a nonce has to be marked in the store first, and a long head
    /// would hold up the loop, whoever has sent it.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification {
        guard let head = context.request?.head else { throw .rejected("signature.no_request") }
        guard RequestSignature.isQuick(head) else { return .undecided }
        let request = try check(in: context)
        return request.nonce == nil ? .authenticated(request.identity) : .undecided
    }

    /// Verifies a signature, and marks its nonce.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        let request = try check(in: context)
        guard let nonce = request.nonce else { return request.identity }
        // Only now: a nonce is used up by whoever has the key, and by no one else.
        try await mark(nonce, of: request, in: context)
        return request.identity
    }

    /// A request whose signature was made with its key.
    private struct Checked {
        let keyID: String
        let nonce: String?
        let signature: VerifiedSignature
        let identity: Identity
    }

    private func check(in context: AuthenticationContext) throws(AuthenticationError) -> Checked {
        guard let head = context.request?.head else { throw .rejected("signature.no_request") }
        let signature = try RequestSignature(of: head)
        guard let key = keys[signature.keyID] else { throw .rejected("signature.unknown_key") }
        let verified = try signature.verify(
            with: key.key, by: policy.requiringNonce(key.requiresNonce), at: context.now)
        var claims = key.claims
        claims["key_id"] = .string(signature.keyID)
        return Checked(
            keyID: signature.keyID, nonce: signature.nonce, signature: verified,
            identity: Identity(
                providerSubject: key.subject, issuer: self.context.name, claims: claims,
                authTime: verified.createdAt, issuedAt: verified.createdAt, expiresAt: Self.never,
                subjectSource: .provider, bodyDigest: verified.bodyDigest))
    }

    /// Marks a nonce as used until its signature is too old.
    private func mark(
        _ nonce: String, of request: Checked, in context: AuthenticationContext
    ) async throws(AuthenticationError) {
        let name = Base64URL.encode(SHA256.digest(Array("\(request.keyID.utf8.count):\(request.keyID)\(nonce)".utf8)))
        let left = request.signature.acceptedUntil.seconds.subtractingReportingOverflow(context.now.seconds)
        // At least a minute: the clocks of instances differ.
        let seconds = min(max(left.overflow ? 0 : left.partialValue, 0), Self.maximumMark) + Self.clockSkew
        let isFirst: Bool
        do throws(StoreError) {
            // Each key has a share: a partner that signs too often is not the outage of another.
            let store = self.context.store.partition(.signatures, for: WorkOwner(named: request.keyID))
            isFirst = try await context.marksUse(
                of: self.context.storeKey("nonce:\(name)"), in: store, lifetime: .seconds(seconds))
        } catch {
            throw .store(error, as: "signature.store_unavailable")
        }
        guard isFirst else { throw .rejected("signature.replayed") }
    }

    /// Longer than any signature is accepted, in seconds.
    private static let maximumMark: Int64 = 2 * 3600
    private static let clockSkew: Int64 = 60
}

extension SignedProvider: Explaining {
    /// The checks of a signature, up to the first that fails; its nonce is not used up.
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        do throws(AuthenticationError) {
            let request = try check(in: context)
            let (subject, end) = (request.identity.providerSubject, request.signature.acceptedUntil)
            return [
                CheckOutcome(
                    check: "signature", failure: nil, detail: "key '\(request.keyID)' of \(subject), until \(end)")
            ]
        } catch {
            return [CheckOutcome(check: "signature", failure: error.code, detail: error.cause.map { "\($0)" } ?? "")]
        }
    }
}
