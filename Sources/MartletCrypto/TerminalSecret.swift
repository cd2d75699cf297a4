private import COpenSSL
package import MartletCore

/// A secret typed at the terminal, where nobody sees it.
package enum TerminalSecret {
    /// Beyond it the terminal's own line ends.
    private static let capacity: Int32 = 1024

    /// Asks on the terminal and waits for a line.
    /// - Parameter twice: asks again and takes the line only if both are equal.
    /// - Returns: `nil` when there is no terminal, the lines differ, or the user has given up.
    package static func read(_ prompt: String, twice: Bool) -> Secret? {
        var line = [UInt8](repeating: 0, count: Int(capacity))
        return unsafe line.withUnsafeMutableBytes { raw in
            defer { unsafe OPENSSL_cleanse(raw.baseAddress, raw.count) }
            let text = unsafe raw.baseAddress?.assumingMemoryBound(to: CChar.self)
            guard unsafe EVP_read_pw_string(text, capacity, prompt, twice ? 1 : 0) == 0 else {
                ERR_clear_error()
                return nil
            }
            return unsafe Secret(Array(raw.prefix { $0 != 0 }))
        }
    }
}
