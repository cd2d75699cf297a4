internal import MartletCore

/// The nonce of one response's style element.
package struct PageNonce: Sendable, Equatable {
    package let text: String

    /// 128 random bits.
    package init() {
        var generator = SystemRandomNumberGenerator()
        text = Base64URL.encode((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    /// A known nonce, for tests; `nil` if it could be more than one value of a policy.
    package init?(_ text: String) {
        let isValid = text.utf8.allSatisfy { byte in
            (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41 || (0x30...0x39).contains(byte) || byte == 0x2D
        }
        guard isValid, !text.isEmpty else { return nil }
        self.text = text
    }
}
