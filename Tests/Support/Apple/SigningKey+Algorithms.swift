internal import COpenSSL

extension SigningKey.Kind {
    /// The name of the kind in OpenSSL.
    var name: String {
        switch self {
        case .rsa: "RSA"
        case .p256, .p384, .p521: "EC"
        case .ed25519: "ED25519"
        case .ed448: "ED448"
        }
    }

    /// The curve of an ECDSA key and the length of its coordinates.
    var curve: (name: String, length: Int32)? {
        switch self {
        case .p256: ("P-256", 32)
        case .p384: ("P-384", 48)
        case .p521: ("P-521", 66)
        case .rsa, .ed25519, .ed448: nil
        }
    }

    /// The algorithm that a key of this kind signs with unless told otherwise.
    package var algorithm: String {
        switch self {
        case .rsa: "RS256"
        case .p256: "ES256"
        case .p384: "ES384"
        case .p521: "ES512"
        case .ed25519, .ed448: "EdDSA"
        }
    }
}

extension SigningKey {
    /// Signs as an algorithm of JWS wants it.
    ///
    /// The kind of key is taken as it is, so that `ES256` with a key of P-384 signs with SHA-256 there.
    /// - Parameters:
    ///   - saltLength: the salt of PSS in bytes; by default that of the hash.
    ///   - mgfHash: the hash of PSS's mask by OpenSSL's name; by default that of the message.
    package func signature(
        over message: [UInt8], as algorithm: String, saltLength: Int32 = RSA_PSS_SALTLEN_DIGEST,
        mgfHash: String? = nil
    ) throws -> [UInt8] {
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        var settings: OpaquePointer?
        let hash = algorithm == "EdDSA" ? nil : unsafe EVP_get_digestbyname("SHA\(algorithm.suffix(3))")
        guard unsafe EVP_DigestSignInit(context, &settings, hash, nil, key) == 1 else { throw TestFailure("sign") }
        if algorithm.hasPrefix("PS") {
            let mask = unsafe EVP_get_digestbyname(mgfHash ?? "SHA\(algorithm.suffix(3))")
            guard unsafe EVP_PKEY_CTX_set_rsa_padding(settings, RSA_PKCS1_PSS_PADDING) == 1,
                unsafe EVP_PKEY_CTX_set_rsa_pss_saltlen(settings, saltLength) == 1,
                unsafe EVP_PKEY_CTX_set_rsa_mgf1_md(settings, mask) == 1
            else { throw TestFailure("PSS") }
        }
        var size = 0
        guard unsafe EVP_DigestSign(context, nil, &size, message, message.count) == 1 else { throw TestFailure("sign") }
        var bytes = [UInt8](repeating: 0, count: size)
        guard unsafe EVP_DigestSign(context, &bytes, &size, message, message.count) == 1 else {
            throw TestFailure("sign")
        }
        bytes.removeLast(bytes.count - size)
        guard let curve = kind.curve else { return bytes }
        return try rawSignature(bytes, length: curve.length)
    }

    /// The public half of a key of EdDSA.
    func rawPublicKey() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64)
        var size = bytes.count
        guard unsafe EVP_PKEY_get_raw_public_key(key, &bytes, &size) == 1 else { throw TestFailure("no public key") }
        return Array(bytes.prefix(size))
    }

    /// r and s one behind the other.
    private func rawSignature(_ der: [UInt8], length: Int32) throws -> [UInt8] {
        var raw = [UInt8](repeating: 0, count: 2 * Int(length))
        let done = unsafe der.withUnsafeBufferPointer { buffer -> Bool in
            var start = buffer.baseAddress
            guard let signature = unsafe d2i_ECDSA_SIG(nil, &start, buffer.count) else { return false }
            defer { unsafe ECDSA_SIG_free(signature) }
            return unsafe raw.withUnsafeMutableBufferPointer { target in
                guard let base = target.baseAddress else { return false }
                return unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, length) == length
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + Int(length), length) == length
            }
        }
        guard done else { throw TestFailure("not a DER signature") }
        return raw
    }
}

/// HMAC with SHA-2 of 256, 384 or 512 bits, for tokens of `HS256` and its kin.
package func hmac(bits: Int, key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: bits / 8)
    var size = UInt32(digest.count)
    _ = unsafe HMAC(
        EVP_get_digestbyname("SHA\(bits)"), key, Int32(key.count), message, message.count, &digest, &size)
    return digest
}
