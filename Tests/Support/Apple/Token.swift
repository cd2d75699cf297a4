import Foundation

/// An identity token in the making: change what you like, then sign it.
package struct Token {
    package var header: [String: JSONText]
    package var claims: [String: JSONText]

    /// A token that is good for an hour at a gateway that takes `com.example.app`.
    package init(kid: String, subject: String = "001234.0123456789abcdef0123456789abcdef.0001") {
        let time = unixNow()
        header = ["alg": "\"RS256\"", "kid": JSONText(string: kid)]
        claims = [
            "iss": "\"https://appleid.apple.com\"",
            "aud": "\"com.example.app\"",
            "sub": JSONText(string: subject),
            "iat": JSONText(time),
            "exp": JSONText(time + 3600),
            "auth_time": JSONText(time),
            "email": "\"someone@example.com\"",
            "email_verified": "true",
            "nonce_supported": "true",
        ]
    }

    /// The bytes that are signed.
    package var signingInput: String { base64URL(Array(json(header).utf8)) + "." + base64URL(Array(json(claims).utf8)) }

    /// The finished token.
    package func signed(by key: SigningKey) throws -> String {
        let input = signingInput
        return input + "." + base64URL(try key.signature(over: Array(input.utf8)))
    }

    /// The token with an HMAC in place of a signature.
    package func signed(byHMAC secret: [UInt8]) -> String {
        let input = signingInput
        return input + "." + base64URL(hmacSHA256(key: secret, Array(input.utf8)))
    }

    private func json(_ members: [String: JSONText]) -> String {
        "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value.text)" }.joined(separator: ",") + "}"
    }
}

/// A piece of JSON exactly as it will stand in a token, so that tests can write what no encoder would.
package struct JSONText: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    package let text: String

    package init(_ text: String) { self.text = text }
    package init(_ number: Int) { text = String(number) }
    package init(stringLiteral value: String) { text = value }
    package init(integerLiteral value: Int) { text = String(value) }

    /// A text as a JSON string.
    package init(string: String) {
        let data = try? JSONSerialization.data(withJSONObject: [string], options: .withoutEscapingSlashes)
        text = String(String(decoding: data ?? Data(), as: UTF8.self).dropFirst().dropLast())
    }
}

/// The wall clock in whole seconds, as tokens have it.
package func unixNow() -> Int { Int(Date().timeIntervalSince1970) }
