internal import COpenSSL
import Foundation

/// A private key of a simulated issuer.
///
/// Made with OpenSSL directly, so that the tests check the gateway's own code against another.
@safe package final class SigningKey: @unchecked Sendable {
    /// What kind of key.
    package enum Kind: Sendable {
        case rsa(bits: Int)
        case p256, p384, p521
        case ed25519, ed448
    }

    package let identifier: String
    package let kind: Kind
    // Never changed after it is made; OpenSSL lets several threads sign with one key.
    let key: OpaquePointer

    /// Makes a fresh key.
    package init(_ identifier: String, _ kind: Kind = .rsa(bits: 2048)) throws {
        self.identifier = identifier
        self.kind = kind
        let name = kind.name
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, name, nil) else { throw TestFailure("no \(name)") }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        unsafe EVP_PKEY_keygen_init(context)
        if case .rsa(let bits) = kind { unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits)) }
        if let curve = kind.curve { unsafe EVP_PKEY_CTX_set_group_name(context, curve.name) }
        var made: OpaquePointer?
        guard unsafe EVP_PKEY_generate(context, &made) == 1, let key = unsafe made else { throw TestFailure("keygen") }
        unsafe self.key = key
    }

    deinit { unsafe EVP_PKEY_free(key) }

    /// Signs as JWS wants it: PKCS #1 v1.5 with SHA-256 for RSA, with r and s one behind the other for a curve.
    package func signature(over message: [UInt8]) throws -> [UInt8] {
        try signature(over: message, as: kind.algorithm)
    }

    /// The public half as a JWK.
    package func jwk(_ extra: [String: String] = [:]) throws -> [String: String] {
        var members = ["kid": identifier, "use": "sig"]
        members["alg"] = kind.algorithm
        switch kind {
        case .rsa:
            members["kty"] = "RSA"
            members["n"] = base64URL(try number("n"))
            members["e"] = base64URL(try number("e"))
        case .p256, .p384, .p521:
            guard let curve = kind.curve else { break }
            members["kty"] = "EC"
            members["crv"] = curve.name
            members["x"] = base64URL(try number("qx", size: curve.length))
            members["y"] = base64URL(try number("qy", size: curve.length))
        case .ed25519, .ed448:
            members["kty"] = "OKP"
            members["crv"] = kind.name == "ED448" ? "Ed448" : "Ed25519"
            members["x"] = base64URL(try rawPublicKey())
        }
        return members.merging(extra) { $1 }
    }

    /// The public half in PEM, which some verifiers once took for an HMAC secret.
    package func publicPEM() throws -> [UInt8] {
        let output = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(output) }
        unsafe PEM_write_bio_PUBKEY(output, key)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = unsafe BIO_read(output, &bytes, 4096)
        return Array(bytes.prefix(Int(max(count, 0))))
    }

    /// The private half in PEM (PKCS#8), not encrypted.
    package func privatePEM() throws -> String {
        let output = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(output) }
        unsafe PEM_write_bio_PKCS8PrivateKey(output, key, nil, nil, 0, nil, nil)
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = unsafe BIO_read(output, &bytes, 8192)
        return String(decoding: bytes.prefix(Int(max(count, 0))), as: UTF8.self)
    }

    private func number(_ name: String, size: Int32? = nil) throws -> [UInt8] {
        var value: OpaquePointer?
        guard unsafe EVP_PKEY_get_bn_param(key, name, &value) == 1 else { throw TestFailure("no \(name)") }
        defer { unsafe BN_free(value) }
        let length = unsafe size ?? (BN_num_bits(value) + 7) / 8
        var bytes = [UInt8](repeating: 0, count: Int(length))
        unsafe BN_bn2binpad(value, &bytes, length)
        return bytes
    }
}

extension SigningKey {
    private static let common = Result { try SigningKey("test-key-1") }

    /// An RSA key that every test of this process may use, because making one takes time: `test-key-1`.
    package static func shared() throws -> SigningKey { try common.get() }
}

/// HMAC-SHA-256, for forged HS256 tokens.
package func hmacSHA256(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    var size: UInt32 = 32
    _ = unsafe HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &digest, &size)
    return digest
}

/// Base64url without padding.
package func base64URL(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
        .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
}
