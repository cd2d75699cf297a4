internal import COpenSSL
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@Suite struct PrivateKeyTests {
    /// A key of any kind as an unencrypted PKCS#8 PEM, or an encrypted one; made by OpenSSL alone.
    static func pem(_ type: String, _ setUp: (OpaquePointer?) -> Int32, password: String? = nil) throws -> Secret {
        let context = unsafe EVP_PKEY_CTX_new_from_name(nil, type, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        try #require(
            unsafe EVP_PKEY_keygen_init(context) == 1 && setUp(context) > 0 && EVP_PKEY_generate(context, &key) == 1)
        defer { unsafe EVP_PKEY_free(key) }
        let output = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(output) }
        let cipher = unsafe password == nil ? nil : EVP_aes_128_cbc()
        let length = Int32(password?.utf8.count ?? 0)
        try #require(unsafe PEM_write_bio_PKCS8PrivateKey(output, key, cipher, password, length, nil, nil) == 1)
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = unsafe BIO_read(output, &bytes, 8192)
        return Secret(Array(bytes.prefix(Int(count))))
    }

    static func rsa(_ bits: Int32, password: String? = nil) throws -> Secret {
        unsafe try pem("RSA", { unsafe EVP_PKEY_CTX_set_rsa_keygen_bits($0, bits) }, password: password)
    }

    static func curve(_ name: String) throws -> Secret {
        unsafe try pem("EC", { unsafe EVP_PKEY_CTX_set_group_name($0, name) })
    }

    static func code(_ pem: Secret) -> ErrorCode? {
        do { _ = try PrivateKey(pem: pem) } catch { return error.code }
        return nil
    }

    @Test func `reads the PEM of RSA and P-256 keys`() throws {
        for pem in [try Self.rsa(2048), try Self.curve("P-256")] {
            let key = try PrivateKey(pem: pem)
            #expect(key.publicKey.verify(try key.sign([1, 2, 3]), over: [1, 2, 3]))
        }
    }

    @Test func `refuses other keys, and encrypted ones without asking for a passphrase`() throws {
        #expect(Self.code(try Self.rsa(1024)) == .cryptoWeakKey)
        #expect(Self.code(try Self.curve("P-384")) == .cryptoBadKey)
        #expect(Self.code(try Self.curve("secp256k1")) == .cryptoBadKey)
        #expect(Self.code(unsafe try Self.pem("ED25519", { _ in 1 })) == .cryptoBadKey)
        #expect(Self.code(try Self.rsa(2048, password: "secret")) == .cryptoBadKey)
        #expect(Self.code(Secret("")) == .cryptoBadKey)
        #expect(Self.code(Secret("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")) == .cryptoBadKey)
    }
}

extension PrivateKeyTests {
    @Test func `gives its public half, from a public PEM or its own`() throws {
        let pair = try SigningKey("k", .p256)
        let own = try PrivateKey(pem: Secret(try pair.privatePEM()))
        #expect(try PublicKey(pem: Secret(try pair.publicPEM())).parts == own.publicKey.parts)
        #expect(try PublicKey(pem: Secret(try pair.privatePEM())).parts == own.publicKey.parts)
    }

    @Test(arguments: [
        "", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "-----BEGIN CERTIFICATE-----",
    ])
    func `has no public half in other texts`(text: String) {
        #expect { try PublicKey(pem: Secret(text)) } throws: { ($0 as? CryptoError)?.code == .cryptoBadKey }
    }
}
