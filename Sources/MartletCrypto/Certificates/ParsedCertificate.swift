internal import COpenSSL

/// An owned certificate of OpenSSL.
@safe package struct ParsedCertificate: ~Copyable {
    let pointer: OpaquePointer

    /// - Throws: `certificate.too_large` or `certificate.malformed`, also for bytes that encode the same certificate in
    ///   another way than DER: it would have several fingerprints.
    init(der: [UInt8]) throws(ClientCertificateError) {
        guard der.count <= ClientCertificate.maximumBytes else {
            throw ClientCertificateError(.certificateTooLarge, "the certificate has \(der.count) bytes")
        }
        ERR_clear_error()
        let parsed = unsafe der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var start = bytes.baseAddress
            guard let parsed = unsafe d2i_X509(nil, &start, bytes.count) else { return nil }
            guard unsafe start == bytes.baseAddress.map({ unsafe $0 + bytes.count }) else {
                unsafe X509_free(parsed)
                return nil
            }
            return unsafe parsed
        }
        guard let parsed = unsafe parsed else {
            ERR_clear_error()
            throw ClientCertificateError(.certificateMalformed, "not a certificate")
        }
        guard unsafe Self.encoded(parsed) == der else {
            unsafe X509_free(parsed)
            throw ClientCertificateError(.certificateMalformed, "the certificate is not DER")
        }
        unsafe pointer = parsed
    }

    deinit { unsafe X509_free(pointer) }

    /// A certificate of OpenSSL in DER.
    @unsafe package static func encoded(_ certificate: OpaquePointer?) -> [UInt8]? {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509(certificate, &output)
        guard count > 0, let start = unsafe output else {
            ERR_clear_error()
            return nil
        }
        defer { unsafe martlet_openssl_free(start) }
        return unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
}
