private import CCrypt

/// The 32 KiB of working memory of one libcrypt computation: on the heap, and wiped in any case.
@safe struct CryptScratch: ~Copyable {
    static let longestPhrase = Int(MARTLET_CRYPT_LONGEST_PHRASE)

    private let data: UnsafeMutablePointer<crypt_data>

    private init() {
        unsafe data = .allocate(capacity: 1)
        unsafe data.initialize(to: crypt_data())
    }

    deinit {
        unsafe martlet_wipe_crypt(data)
        unsafe data.deallocate()
    }

    /// Hashes a phrase with the salt and cost of the setting.
    ///
    /// - Parameter phrase: no NUL, at most ``longestPhrase`` bytes.
    /// - Throws: `crypto.hash_failed` for a setting that the library does not accept, or without memory.
    static func compute(_ phrase: ArraySlice<UInt8>, setting: [UInt8]) throws(CryptoError) -> [UInt8] {
        let scratch = CryptScratch()
        let output = unsafe phrase.withUnsafeBytes { phrase in
            unsafe setting.withUnsafeBytes { setting in
                unsafe martlet_crypt(
                    scratch.data, phrase.baseAddress, phrase.count, setting.baseAddress, setting.count)
            }
        }
        guard let output = unsafe output else { throw CryptoError(.cryptoHashFailed, "libcrypt computed no hash") }
        return unsafe Array(String(cString: output).utf8)
    }
}
