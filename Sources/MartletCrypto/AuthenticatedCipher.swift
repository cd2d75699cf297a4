private import COpenSSL
internal import MartletCore

/// One operation of the cipher; leaves OpenSSL's error queue empty.
@safe struct AuthenticatedCipher: ~Copyable {
    private let context: OpaquePointer?
    private let cipher: FetchedCipher
    private let isSealing: Bool

    init(_ cipher: FetchedCipher, isSealing: Bool) {
        unsafe context = EVP_CIPHER_CTX_new()
        (self.cipher, self.isSealing) = (cipher, isSealing)
    }

    deinit {
        // Wipes the key schedule.
        unsafe EVP_CIPHER_CTX_free(context)
        if !isSealing { ERR_clear_error() }
    }

    /// - Parameter nonce: of the cipher's default length; `nil` for one that has none.
    func begin(_ key: Secret, nonce: UnsafeBufferPointer<UInt8>? = nil) -> Bool {
        key.withBytes { key in
            unsafe key.withUnsafeBufferPointer { key in
                unsafe EVP_CipherInit_ex2(
                    context, cipher.pointer, key.baseAddress, nonce?.baseAddress, isSealing ? 1 : 0, nil
                ) == 1
            }
        }
    }

    func bind(_ bytes: [UInt8]) -> Bool {
        guard !bytes.isEmpty else { return true }
        var written: Int32 = 0
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe EVP_CipherUpdate(context, nil, &written, bytes.baseAddress, Int32(clamping: bytes.count)) == 1
        }
    }

    /// - Parameter output: at least as long as the input.
    func process(_ input: UnsafeBufferPointer<UInt8>, _ output: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        guard !input.isEmpty else { return true }
        guard let count = Int32(exactly: input.count) else { return false }
        var written: Int32 = 0
        return unsafe EVP_CipherUpdate(context, output.baseAddress, &written, input.baseAddress, count) == 1
            && written == count
    }

    /// The tag that is to be found, before the bytes are processed.
    func expect(_ tag: UnsafeBufferPointer<UInt8>) -> Bool {
        unsafe EVP_CIPHER_CTX_ctrl(
            context, EVP_CTRL_AEAD_SET_TAG, Int32(clamping: tag.count),
            UnsafeMutableRawPointer(mutating: tag.baseAddress)) == 1
    }

    /// Whether everything was processed, and has the expected tag.
    func finish() -> Bool {
        var written: Int32 = 0
        var scratch: UInt8 = 0
        return unsafe EVP_CipherFinal_ex(context, &scratch, &written) == 1
    }

    func finish(_ tag: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        unsafe finish()
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(clamping: tag.count), tag.baseAddress) == 1
    }
}

/// A cipher's implementation, fetched once, because a lookup costs more than sealing a record.
///
/// Unchecked because the pointer is not `Sendable`: a fetched cipher is immutable and thread-safe.
@safe final class FetchedCipher: @unchecked Sendable {
    static let aes256GCM = FetchedCipher("AES-256-GCM")
    static let aes256SIV = FetchedCipher("AES-256-SIV")
    let pointer: OpaquePointer?

    private init(_ name: String) { unsafe pointer = EVP_CIPHER_fetch(nil, name, nil) }
}
