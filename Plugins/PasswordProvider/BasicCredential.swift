package import MartletCore

/// A name and a password as `Authorization: Basic` carries them (RFC 7617 §2), decoded strictly.
package struct BasicCredential: Sendable {
    /// The longest token, in bytes: a name, a colon, and a password that may still shrink when it is composed.
    private static let maximumBytes = 8192

    package let name: [UInt8]
    package let password: Secret

    /// - Parameter token: what follows the scheme.
    /// - Returns: `nil` for anything but padded standard base64 of UTF-8 without control characters, with a colon.
    package init?(_ token: [UInt8]) {
        guard token.count <= Self.maximumBytes, let decoded = Base64.decode(token[...], padding: .required) else {
            return nil
        }
        // A `Secret`, because that wipes its bytes.
        let pair = Secret(decoded)
        let parts = pair.withBytes { bytes -> (name: [UInt8], password: Secret)? in
            guard Self.isText(bytes), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            return (Array(bytes[..<colon]), Secret(Array(bytes[(colon + 1)...])))
        }
        guard let parts else { return nil }
        name = parts.name
        password = parts.password
    }

    private static func isText(_ bytes: [UInt8]) -> Bool {
        if bytes.allSatisfy({ (0x20...0x7E).contains($0) }) { return true }
        guard let text = String(validating: bytes, as: UTF8.self) else { return false }
        return !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}
