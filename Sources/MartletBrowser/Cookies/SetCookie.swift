/// Writes the `Set-Cookie` fields of one cookie (RFC 6265bis §4.1): `HttpOnly`, for all paths of this host alone.
package struct SetCookie: Sendable, Equatable {
    /// From where the cookie is sent along.
    package enum SameSite: String, Sendable, CaseIterable {
        case lax = "Lax"
        case strict = "Strict"
        case none = "None"
    }

    package private(set) var name: String
    private let isSecure: Bool
    private let sameSite: SameSite
    /// In seconds; 0 until the browser is closed.
    private var maximumAge: Int64

    /// - Parameters:
    ///   - name: a token (RFC 9110 §5.6.2).
    ///   - isSecure: whether it is sent over `https` alone.
    ///   - sameSite: from where it is sent along; browsers reject `none` unless it is secure.
    ///   - maximumAge: 0 for a cookie that ends with the browser.
    package init(name: String, isSecure: Bool, sameSite: SameSite, maximumAge: Duration) {
        self.name = name
        self.isSecure = isSecure
        self.sameSite = sameSite
        self.maximumAge = max(maximumAge.components.seconds, 0)
    }

    /// The same for another name.
    func named(_ name: String) -> SetCookie {
        var copy = self
        copy.name = name
        return copy
    }

    /// The same for another time.
    package func lasting(_ time: Duration) -> SetCookie {
        var copy = self
        copy.maximumAge = max(time.components.seconds, 0)
        return copy
    }

    /// The field's value that sets the cookie.
    /// - Throws: `browser.cookie_malformed` for a value that would end it or begin another attribute,
    ///   `browser.cookie_too_long`.
    package func text(_ value: String) throws(BrowserError) -> String {
        guard value.utf8.allSatisfy(CookieValue.isMember) else { throw .cookieMalformed }
        guard value.utf8.count <= CookieValue.maximumBytes else { throw .cookieTooLong }
        return "\(name)=\(value)\(attributes)\(maximumAge > 0 ? "; Max-Age=\(maximumAge)" : "")"
    }

    /// The field's value that deletes the cookie.
    ///
    /// It has the attributes with which the cookie was set: without them browsers reject it for a name with a prefix.
    package var deletion: String { "\(name)=\(attributes); Max-Age=0" }

    private var attributes: String {
        "; Path=/\(isSecure ? "; Secure" : ""); HttpOnly; SameSite=\(sameSite.rawValue)"
    }
}

/// The values of the gateway's cookies.
enum CookieValue {
    /// The longest value of a cookie in a request or a response. With the longest name and all attributes a field stays
    /// below the 4096 bytes that every browser accepts.
    static let maximumBytes = 3900

    /// RFC 6265 §4.1.1 `cookie-octet`; the gateway quotes nothing.
    static func isMember(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: ",")
            && byte != UInt8(ascii: ";") && byte != UInt8(ascii: "\\")
    }
}

extension BrowserError {
    static let cookieMalformed = BrowserError(.browserCookieMalformed, "a cookie of the gateway is malformed")
    static let cookieTooLong = BrowserError(.browserCookieTooLong, "a cookie of the gateway is too long")
    static let cookieRepeated = BrowserError(.browserCookieRepeated, "a cookie of the gateway is repeated")
}
