/// A public key that verifies signatures of one scheme (RFC 7518 §3.3 to §3.5, RFC 8037 §3.1). Thread-safe.
public final class PublicKey: Sendable {
    /// The allowed modulus sizes: verification time grows with the square of the size.
    private static let rsaBits = 2048...8192
    /// Exponents above 64 bits only make verification slow.
    private static let exponentBytes = 8

    /// The components of the key.
    public let parts: PublicKeyParts
    /// The scheme that the key is bound to.
    public let scheme: SignatureScheme
    private let handle: KeyHandle
    private let template: VerificationTemplate
    /// `nil` unless signatures are r‖s.
    private let curve: EllipticCurve?
    private let signatureLength: Int

    /// A key bound to the scheme that its kind has; RSA: PKCS #1 v1.5 with SHA-256.
    ///
    /// - Throws: `crypto.bad_key` for components that are not a key, `crypto.weak_key` for RSA not of 2048 to 8192
    ///   bits, of a faulty generator, or with an exponent that is even, below 65537 or above 64 bits, and for an EdDSA
    ///   point of small order.
    public convenience init(_ parts: PublicKeyParts) throws(CryptoError) {
        try self.init(parts, for: parts.defaultScheme)
    }

    /// A key bound to a scheme.
    /// - Throws: As above, and `crypto.bad_key` for a scheme of another kind of key.
    public convenience init(_ parts: PublicKeyParts, for scheme: SignatureScheme) throws(CryptoError) {
        let handle: KeyHandle
        var own = parts
        switch parts {
        case .rsa(let modulus, let exponent):
            let modulus = Array(modulus.drop { $0 == 0 })
            let exponent = Array(exponent.drop { $0 == 0 })
            try Self.check(modulus: modulus, exponent: exponent)
            handle = try KeyHandle(modulus: modulus, exponent: exponent)
            own = .rsa(modulus: modulus, exponent: exponent)
        case .p256(let x, let y): handle = try KeyHandle(.p256, x: x, y: y)
        case .p384(let x, let y): handle = try KeyHandle(.p384, x: x, y: y)
        case .p521(let x, let y): handle = try KeyHandle(.p521, x: x, y: y)
        case .ed25519(let x): handle = try KeyHandle(.ed25519, point: x)
        case .ed448(let x): handle = try KeyHandle(.ed448, point: x)
        }
        try self.init(own, handle, scheme)
    }

    private init(_ parts: PublicKeyParts, _ handle: KeyHandle, _ scheme: SignatureScheme) throws(CryptoError) {
        let mismatch = CryptoError(.cryptoBadKey, "the signature scheme is not one of this kind of key")
        let curve = parts.ellipticCurve
        switch scheme {
        case .rsaPKCS1(let hash), .rsaPSS(let hash):
            guard case .rsa(let modulus, _) = parts else { throw mismatch }
            template = try VerificationTemplate(handle, hash: hash, isPSS: scheme == .rsaPSS(hash))
            signatureLength = modulus.count
        case .ecdsa:
            guard let curve else { throw mismatch }
            template = try VerificationTemplate(handle, hash: curve.hash, isPSS: false)
            signatureLength = 2 * curve.length
        case .edDSA:
            guard let curve = parts.edwardsCurve else { throw mismatch }
            template = try VerificationTemplate(handle, hash: nil, isPSS: false)
            signatureLength = 2 * curve.length
        }
        self.curve = curve
        self.parts = parts
        self.handle = handle
        self.scheme = scheme
    }

    /// The same key, bound to another scheme of its kind.
    /// - Throws: `crypto.bad_key` for a scheme of another kind of key.
    public func bound(to scheme: SignatureScheme) throws(CryptoError) -> PublicKey {
        try PublicKey(parts, handle, scheme)
    }

    private static func check(modulus: [UInt8], exponent: [UInt8]) throws(CryptoError) {
        guard let first = modulus.first, let last = modulus.last else {
            throw CryptoError(.cryptoBadKey, "the modulus is empty")
        }
        let bits = modulus.count * 8 - first.leadingZeroBitCount
        guard rsaBits.contains(bits) else { throw CryptoError(.cryptoWeakKey, "the modulus has \(bits) bits") }
        guard last & 1 == 1 else { throw CryptoError(.cryptoBadKey, "the modulus is even") }
        guard !RelatedPrimes.areLikely(in: modulus) else {
            throw CryptoError(.cryptoWeakKey, "the modulus is that of a faulty generator (CVE-2017-15361)")
        }
        guard exponent.count <= exponentBytes else { throw CryptoError(.cryptoWeakKey, "the exponent is too large") }
        let value = exponent.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard value >= 65537, value & 1 == 1 else {
            throw CryptoError(.cryptoWeakKey, "the exponent is below 65537 or even")
        }
    }

    /// Whether `signature` over `message` was made with the private key and the scheme.
    ///
    /// A signature of the wrong length, or with `r` or `s` outside 1 ..< n, is rejected before any arithmetic.
    public func verify(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        guard signature.count == signatureLength else { return false }
        guard let curve else { return template.verify(signature, over: message) }
        guard let encoded = curve.derSignature(raw: signature) else { return false }
        return template.verify(encoded, over: message)
    }
}

extension PublicKeyParts {
    /// The curve of an ECDSA key.
    fileprivate var ellipticCurve: EllipticCurve? {
        switch self {
        case .p256: .p256
        case .p384: .p384
        case .p521: .p521
        case .rsa, .ed25519, .ed448: nil
        }
    }

    /// The curve of an EdDSA key.
    fileprivate var edwardsCurve: EdwardsCurve? {
        switch self {
        case .ed25519: .ed25519
        case .ed448: .ed448
        case .rsa, .p256, .p384, .p521: nil
        }
    }
}
