/// Tells the tokens of sessions from those of providers, by the two prefixes of `OwnToken` that are bearer tokens.
package enum SessionPrefix {
    /// Whether a bearer token is a session's access or refresh token. Every request with a bearer token asks.
    package static func begins(_ token: UnsafeBufferPointer<UInt8>) -> Bool {
        guard token.count >= 4 else { return false }
        let isLettered =
            unsafe token[0] == UInt8(ascii: "m") && token[2] == UInt8(ascii: "t") && token[3] == UInt8(ascii: "_")
        return unsafe isLettered && (token[1] == UInt8(ascii: "a") || token[1] == UInt8(ascii: "r"))
    }
}
