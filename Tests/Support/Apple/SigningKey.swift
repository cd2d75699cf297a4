internal import COpenSSL
import Foundation

/// A private key of a simulated issuer.
///
/// Made with OpenSSL directly, so that the tests check the gateway's own code against another.
@safe package final class SigningKey: @unchecked Sendable {
    /// What kind of key.
    package enum Kind: Sendable {
        case rsa(bits: Int)
        case p256
    }

    package let identifier: String
    package let kind: Kind
    // Never changed after it is made; OpenSSL lets several threads sign with one key.
    private let key: OpaquePointer

    /// Makes a fresh key.
    package init(_ identifier: String, _ kind: Kind = .rsa(bits: 2048)) throws {
        self.identifier = identifier
        self.kind = kind
        let name: String
        switch kind {
        case .rsa: name = "RSA"
        case .p256: name = "EC"
        }
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, name, nil) else { throw TestFailure("no \(name)") }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        unsafe EVP_PKEY_keygen_init(context)
        switch kind {
        case .rsa(let bits): unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits))
        case .p256: unsafe EVP_PKEY_CTX_set_group_name(context, "P-256")
        }
        var made: OpaquePointer?
        guard unsafe EVP_PKEY_generate(context, &made) == 1, let key = unsafe made else { throw TestFailure("keygen") }
        unsafe self.key = key
    }

    deinit { unsafe EVP_PKEY_free(key) }

    /// Signs as JWS wants it: PKCS #1 v1.5 for RSA, r and s one behind the other for P-256.
    package func signature(over message: [UInt8]) throws -> [UInt8] {
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        var size = 0
        guard unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            unsafe EVP_DigestSign(context, nil, &size, message, message.count) == 1
        else { throw TestFailure("sign") }
        var bytes = [UInt8](repeating: 0, count: size)
        guard unsafe EVP_DigestSign(context, &bytes, &size, message, message.count) == 1 else {
            throw TestFailure("sign")
        }
        bytes.removeLast(bytes.count - size)
        switch kind {
        case .rsa: return bytes
        case .p256: return try rawSignature(bytes)
        }
    }

    /// The public half as a JWK.
    package func jwk(_ extra: [String: String] = [:]) throws -> [String: String] {
        var members = ["kid": identifier, "use": "sig"]
        switch kind {
        case .rsa:
            members["kty"] = "RSA"
            members["alg"] = "RS256"
            members["n"] = base64URL(try number("n"))
            members["e"] = base64URL(try number("e"))
        case .p256:
            members["kty"] = "EC"
            members["alg"] = "ES256"
            members["crv"] = "P-256"
            members["x"] = base64URL(try number("qx", size: 32))
            members["y"] = base64URL(try number("qy", size: 32))
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

    private func rawSignature(_ der: [UInt8]) throws -> [UInt8] {
        var raw = [UInt8](repeating: 0, count: 64)
        let done = unsafe der.withUnsafeBufferPointer { buffer -> Bool in
            var start = buffer.baseAddress
            guard let signature = unsafe d2i_ECDSA_SIG(nil, &start, buffer.count) else { return false }
            defer { unsafe ECDSA_SIG_free(signature) }
            return unsafe raw.withUnsafeMutableBufferPointer { target in
                guard let base = target.baseAddress else { return false }
                return unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, 32) == 32
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + 32, 32) == 32
            }
        }
        guard done else { throw TestFailure("not a DER signature") }
        return raw
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
