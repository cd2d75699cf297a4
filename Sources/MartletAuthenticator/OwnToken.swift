/// The gateway's own tokens, recognized by their prefix.
package enum OwnToken {
    /// Whether a word of a field's value is one of them: behind another scheme, in quotes, or without any scheme.
    package static func appears(in value: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in value.indices {
            let before = index > 0 ? unsafe value[index - 1] : 0x20
            let isWithinWord = before == 0x5F || before == 0x2D || isAlphanumeric(before)
            if !isWithinWord, unsafe matches(UnsafeBufferPointer(rebasing: value[index...])) { return true }
        }
        return false
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }

    /// Whether a bearer token has the prefix of the gateway's access or refresh tokens.
    package static func matches(_ token: UnsafeBufferPointer<UInt8>) -> Bool {
        guard token.count >= 4 else { return false }
        let isLettered =
            unsafe token[0] == UInt8(ascii: "m") && token[2] == UInt8(ascii: "t") && token[3] == UInt8(ascii: "_")
        return unsafe isLettered && (token[1] == UInt8(ascii: "a") || token[1] == UInt8(ascii: "r"))
    }
}
