public import MartletCore
private import MartletJOSE
public import MartletJSON

/// The payload of a token, with its registered claims (RFC 7519 §4.1) found in one pass.
public struct TokenClaims: Sendable {
    /// The claims that ``TokenChecks`` looks at; the raw value is the name in the token.
    public enum Name: String, Sendable, CaseIterable {
        case issuer = "iss"
        case audience = "aud"
        case expiry = "exp"
        case issuedAt = "iat"
        case notBefore = "nbf"
        case subject = "sub"
        case authTime = "auth_time"
    }

    private static let none = -1

    public let payload: JSONObject
    private var issuer = none
    private var audience = none
    private var expiry = none
    private var issuedAt = none
    private var notBefore = none
    private var subject = none
    private var authTime = none

    public init(_ payload: JSONObject) {
        self.payload = payload
        for index in payload.members.indices {
            switch payload.members[index].name {
            case let name where name.utf8.count == 3: find(name, at: index)
            case let name where name.hasSameBytes(as: Name.authTime.rawValue): authTime = first(authTime, index)
            default: break
            }
        }
    }

    private mutating func find(_ name: String, at index: Int) {
        if name.hasSameBytes(as: "iss") {
            issuer = first(issuer, index)
        } else if name.hasSameBytes(as: "aud") {
            audience = first(audience, index)
        } else if name.hasSameBytes(as: "exp") {
            expiry = first(expiry, index)
        } else if name.hasSameBytes(as: "iat") {
            issuedAt = first(issuedAt, index)
        } else if name.hasSameBytes(as: "sub") {
            subject = first(subject, index)
        } else if name.hasSameBytes(as: "nbf") {
            notBefore = first(notBefore, index)
        }
    }

    /// Like a lookup in the object: of duplicates, the first counts.
    private func first(_ old: Int, _ new: Int) -> Int { old == Self.none ? new : old }

    private func index(of name: Name) -> Int {
        switch name {
        case .issuer: issuer
        case .audience: audience
        case .expiry: expiry
        case .issuedAt: issuedAt
        case .notBefore: notBefore
        case .subject: subject
        case .authTime: authTime
        }
    }

    /// Whether the claim is there, but null.
    func isNull(_ name: Name) -> Bool {
        let index = index(of: name)
        return index != Self.none && payload.members[index].value == .null
    }

    /// The value of a claim; `nil` if it is absent, or null.
    public subscript(name: Name) -> JSONValue? {
        let index = index(of: name)
        // Not a conditional expression: its `nil` would be a JSON null.
        guard index != Self.none else { return nil }
        if case .null = payload.members[index].value { return nil }
        return payload.members[index].value
    }

    /// A time in seconds since 1970: digits only, 12 at most; see `NumericDate` for one that may have a fraction.
    /// - Returns: `nil` for a fraction, an exponent, a negative number, and anything that is not a number.
    public static func time(_ value: JSONValue) -> UnixTime? {
        guard case .number(let number) = value, number.text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return NumericDate(value)?.floor
    }

    /// The longest identifier of a user in bytes.
    public static let maximumIdentifierBytes = 255

    /// Whether a string can identify a user or a token: 1 to 255 bytes without control characters.
    public static func isIdentifier(_ text: String) -> Bool {
        (1...maximumIdentifierBytes).contains(text.utf8.count) && !hasControl(text)
    }

    /// Whether a string has characters of the category Cc, which Unicode has closed: no table lookup is needed.
    static func hasControl(_ text: String) -> Bool {
        let bytes = text.utf8Span.span
        // Usually all bytes are printable ASCII, at most 0x5E after subtracting 0x20: no branch for each byte.
        var maximum: UInt8 = 0
        for index in bytes.indices { maximum = max(maximum, bytes[index] &- 0x20) }
        if maximum <= 0x5E { return false }
        var previous: UInt8 = 0
        for index in bytes.indices {
            let byte = bytes[index]
            // U+0080 to U+009F are C2 80 to C2 9F.
            if byte < 0x20 || byte == 0x7F || (previous == 0xC2 && byte < 0xA0) { return true }
            previous = byte
        }
        return false
    }
}
