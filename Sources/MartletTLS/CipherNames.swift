private import COpenSSL
internal import MartletCore

/// The default ciphers, and the lists of ciphers in the configuration.
enum CipherNames {
    /// For TLS 1.2: only forward secrecy and authenticated encryption, the fastest first.
    static let standard = """
        ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:\
        ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305
        """
    /// For TLS 1.3.
    static let standardSuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    /// The key exchange groups, in the server's order of preference.
    static let groups = "X25519:P-256:P-384"

    /// Sets the TLS 1.2 ciphers.
    static func apply(_ list: String?, to context: OpaquePointer) throws(TLSError) {
        var names: [String] = []
        for name in (list ?? standard).split(separator: ":", omittingEmptySubsequences: false) {
            let known = try openSSLName(String(name))
            // OpenSSL ignores an unknown name if the list has another valid one, so names are checked one by one.
            ERR_clear_error()
            guard unsafe SSL_CTX_set_cipher_list(context, known) == 1 else { throw unknown(name) }
            names.append(known)
        }
        // Exclude ciphers without authentication or encryption, whatever a cipher group contains.
        let all = (names + ["!aNULL", "!eNULL"]).joined(separator: ":")
        guard unsafe SSL_CTX_set_cipher_list(context, all) == 1 else {
            throw TLSError(.tlsCipherUnknown, "'\(list ?? "")' selects no cipher")
        }
    }

    /// Sets the TLS 1.3 cipher suites.
    static func applySuites(_ list: String?, to context: OpaquePointer) throws(TLSError) {
        let text = list ?? standardSuites
        for name in text.split(separator: ":", omittingEmptySubsequences: false) {
            ERR_clear_error()
            guard !name.isEmpty, unsafe SSL_CTX_set_ciphersuites(context, String(name)) == 1 else {
                throw unknown(name)
            }
        }
        ERR_clear_error()
        guard unsafe SSL_CTX_set_ciphersuites(context, text) == 1 else {
            throw TLSError(.tlsCipherUnknown, "'\(text)'")
        }
    }

    /// OpenSSL's name of a cipher, also by its IANA name such as `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
    private static func openSSLName(_ name: String) throws(TLSError) -> String {
        // Operators and commands such as `+` and `@SECLEVEL` can reorder or weaken the list, and OpenSSL accepts other
        // separators, too: allow plain names only.
        guard let first = name.utf8.first, isLetter(first), name.utf8.allSatisfy(isPart) else {
            throw unknown(name[...])
        }
        guard name.hasPrefix("TLS_"), let known = unsafe OPENSSL_cipher_name(name) else { return name }
        let text = unsafe String(cString: known)
        return text == "(NONE)" ? name : text
    }

    private static func isLetter(_ byte: UInt8) -> Bool { byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A }

    /// Letters, digits and the separators within a name.
    private static func isPart(_ byte: UInt8) -> Bool {
        isLetter(byte) || byte >= 0x30 && byte <= 0x39 || [0x2B, 0x2D, 0x5F].contains(byte)
    }

    private static func unknown(_ name: Substring) -> TLSError {
        ERR_clear_error()
        return TLSError(code: .tlsCipherUnknown, message: "'\(name)' is not a supported cipher")
    }
}
