private import COpenSSL
internal import MartletCore

/// A PEM file of certificate authorities.
struct TrustFile {
    let path: String

    /// Adds the authorities to those that a context trusts.
    /// - Parameter announces: whether their names are sent to clients, to select a certificate.
    /// - Returns: the digests of all authorities.
    func load(into context: OpaquePointer, announces: Bool) throws(TLSError) -> [UInt8] {
        try unsafe load(into: SSL_CTX_get_cert_store(context)) { authority in
            unsafe !announces || SSL_CTX_add_client_CA(context, authority) == 1
        }
    }

    /// Adds the authorities to a store.
    /// - Parameter use: what else is done with each; false if that failed.
    /// - Returns: the digests of all authorities.
    @unsafe func load(into store: OpaquePointer?, use: (OpaquePointer) -> Bool) throws(TLSError) -> [UInt8] {
        let file = try PEMFile(path, unreadable: .tlsTrustUnreadable)
        var digests: [UInt8] = []
        let count = try unsafe file.certificates(of: path, invalid: .tlsTrustInvalid) { authority throws(TLSError) in
            defer { unsafe X509_free(authority) }
            var digest = [UInt8](repeating: 0, count: 32)
            guard unsafe X509_digest(authority, EVP_sha256(), &digest, nil) == 1,
                unsafe X509_STORE_add_cert(store, authority) == 1, unsafe use(authority)
            else { throw TLSError(.tlsTrustInvalid, path) }
            digests += digest
        }
        guard count > 0 else { throw TLSError(code: .tlsTrustEmpty, message: "\(path) has no certificate") }
        return digests
    }
}
