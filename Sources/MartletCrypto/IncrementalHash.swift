private import COpenSSL

/// A digest that is computed piece by piece, while the bytes stream.
@safe package struct IncrementalHash: ~Copyable {
    private let context: OpaquePointer
    private let length: Int
    /// OpenSSL failed; there is no digest.
    private var hasFailed = false

    /// - Throws: `crypto.failure`.
    package init(_ function: HashFunction) throws(CryptoError) {
        guard let context = unsafe EVP_MD_CTX_new() else { throw .draining(.cryptoFailure, "no digest context") }
        guard unsafe EVP_DigestInit_ex(context, function.pointer, nil) == 1 else {
            unsafe EVP_MD_CTX_free(context)
            throw .draining(.cryptoFailure, "no digest")
        }
        unsafe self.context = context
        length = function.length
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    /// Continues with the next bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard unsafe !bytes.isEmpty else { return }
        if unsafe EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) != 1 { hasFailed = true }
    }

    /// Continues with the next bytes.
    package mutating func update(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe update($0) } }

    /// The digest of all bytes; `nil` if OpenSSL failed.
    package consuming func finish() -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: length)
        let isDone = unsafe digest.withUnsafeMutableBufferPointer { output in
            unsafe EVP_DigestFinal_ex(context, output.baseAddress, nil) == 1
        }
        guard isDone, !hasFailed else {
            ERR_clear_error()
            return nil
        }
        return digest
    }
}
