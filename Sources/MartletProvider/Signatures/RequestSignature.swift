public import MartletCore
public import MartletCrypto
internal import MartletHTTP

/// What signatures of requests a provider accepts (RFC 9421 §3.2).
public struct RequestSignaturePolicy: Sendable {
    let policy: SignaturePolicy

    /// - Parameters:
    ///   - covers: what a signature has to cover at least: `@method`, `@authority`, `@path`, `@query`, `@target-uri` and
    ///     others of RFC 9421 §2.2, and names of fields in lower case. A body is always covered, by `content-digest`.
    ///   - maximumAge: how long after its `created` a signature is accepted, in seconds.
    ///   - requiresNonce: whether a signature without `nonce` is rejected.
    /// - Throws: for a component that is none of a request.
    public init(covers: [String], maximumAge: Int64, requiresNonce: Bool) throws(RequestSignaturePolicyError) {
        var components: [SignatureComponent] = []
        for name in covers {
            do throws(MessageSignatureError) { components.append(try SignatureComponent(named: name)) } catch {
                throw RequestSignaturePolicyError(component: name, code: error.code, message: error.message)
            }
        }
        policy = SignaturePolicy(covers: components, maximumAge: maximumAge, requiresNonce: requiresNonce)
    }

    /// The same with another rule about nonces.
    public func requiringNonce(_ requires: Bool) -> RequestSignaturePolicy {
        var changed = policy
        changed.requiresNonce = requires
        return RequestSignaturePolicy(policy: changed)
    }

    private init(policy: SignaturePolicy) { self.policy = policy }
}

/// Why a policy names what no signature of a request can cover.
public struct RequestSignaturePolicyError: CodedError {
    /// The component as it was given.
    public let component: String
    public let code: ErrorCode
    public let message: String
}

/// The signature of a request (RFC 9421), read from its head and not yet verified.
public struct RequestSignature: Sendable {
    private let signature: MessageSignature
    private let request: SignedRequest
    private let hasBody: Bool

    /// Bytes of a head whose signed parts are read about as fast as a signature is verified.
    private static let quickBytes = 4 * 1024

    /// Whether reading and verifying the signature of a head takes no longer than about two verifications, so that an
    /// event loop may do it.
    public static func isQuick(_ head: ReceivedHead) -> Bool {
        var count = head.path.utf8.count + (head.query?.utf8.count ?? 0)
        for field in head.fields { count += field.name.utf8.count + field.value.count }
        return count <= quickBytes
    }

    /// Reads the fields `Signature-Input` and `Signature`.
    /// - Throws: malformed for several signatures, rejected for anything else that is wrong with the fields.
    public init(of head: ReceivedHead) throws(AuthenticationError) {
        do throws(MessageSignatureError) {
            signature = try MessageSignature(
                input: Self.joined("signature-input", of: head), signature: Self.joined("signature", of: head))
        } catch {
            // Which of several signatures counts is for no one to guess: the request is ambiguous.
            guard error.code != .signatureRepeated else { throw .malformed(error.code, cause: error) }
            throw .rejected(error.code, cause: error)
        }
        request = SignedRequest(
            method: Array(head.method.utf8), scheme: Array(head.scheme.utf8), authority: Array(head.authority.utf8),
            path: Array(head.path.utf8), query: head.query.map { Array($0.utf8) },
            fields: head.fields.map { SignedRequest.Field(name: $0.name, value: $0.value) })
        hasBody = head.hasBody
    }

    /// The name of the key that it says it was made with.
    public var keyID: String { signature.keyID }
    /// Its nonce; not known to be the client's before ``verify(with:by:at:)`` returns.
    public var nonce: String? { signature.nonce }

    /// Checks what the signature covers, when it was made, and that it was made with the key.
    ///
    /// - Returns: what it vouches for. Whether its nonce was used before is for the caller to find out.
    /// - Throws: rejected, with the code of the first check that fails; malformed for a `Content-Digest` that is
    ///   covered and cannot be compared with.
    public func verify(
        with key: MessageSignatureKey, by policy: RequestSignaturePolicy, at now: UnixTime
    ) throws(AuthenticationError) -> VerifiedSignature {
        let end: UnixTime
        let base: [UInt8]
        do throws(MessageSignatureError) {
            end = try policy.policy.check(signature, algorithm: key.algorithm.rawValue, hasBody: hasBody, now: now)
            base = try signature.base(of: request)
        } catch {
            throw .rejected(error.code, cause: error)
        }
        guard key.verify(signature.signature, over: base) else { throw .rejected("signature.invalid") }
        return VerifiedSignature(
            createdAt: UnixTime(seconds: signature.created ?? now.seconds), acceptedUntil: end,
            bodyDigest: try bodyDigest())
    }

    /// The digests of the covered field; one that is not covered may be anyone's.
    private func bodyDigest() throws(AuthenticationError) -> BodyDigest? {
        guard signature.coversField("content-digest") else { return nil }
        let values = request.fields.filter { $0.name == "content-digest" }.map(\.value)
        do throws(ContentDigestError) {
            let digest = try ContentDigest(Array(values.joined(separator: ", ".utf8)))
            return BodyDigest(sha256: digest.sha256, sha512: digest.sha512)
        } catch {
            throw .malformed(error.code, cause: error)
        }
    }

    private static func joined(_ name: String, of head: ReceivedHead) -> [UInt8] {
        var joined: [UInt8] = []
        var isFirst = true
        for field in head.fields where field.name.hasSameBytes(as: name) {
            if isFirst {
                joined = field.value
            } else {
                joined += ", ".utf8
                joined += field.value
            }
            isFirst = false
        }
        return joined
    }
}

/// What a signature that was made with its key vouches for.
public struct VerifiedSignature: Sendable {
    /// When it was made, as its `created` says.
    public let createdAt: UnixTime
    /// The last second in which it is accepted: until then its nonce must not be accepted again.
    public let acceptedUntil: UnixTime
    /// For ``Identity/bodyDigest``; `nil` if it covers no `Content-Digest`.
    public let bodyDigest: BodyDigest?
}
