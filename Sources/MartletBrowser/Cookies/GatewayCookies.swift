package import MartletHTTP

/// The cookies that the gateway sets: their names, how they are set, and how they are found in heads.
///
/// A class, so that the request path passes one reference instead of copying its texts.
package final class GatewayCookies: Sendable {
    /// What a cookie is for.
    package enum Kind: Sendable, CaseIterable {
        /// The session.
        case session
        /// Sign-ins that wait for a provider (``SignInAttempts``).
        case start
        /// A random value that forms are bound to (``FormTokens``).
        case form

        /// What follows the name of the session's cookie.
        var suffix: String {
            switch self {
            case .session: ""
            case .start: "-start"
            case .form: "-form"
            }
        }
    }

    /// Sets the session's cookie.
    package let session: SetCookie
    /// Sets the cookie of sign-ins that wait for a provider.
    ///
    /// Providers may respond with a form, whose POST comes from another site: only `SameSite=None` is sent along.
    /// Without `https` browsers reject that, and the cookie is `Lax`: then the provider must redirect, or be of the same
    /// host.
    package let start: SetCookie
    /// Sets the cookie that forms are bound to.
    package let form: SetCookie
    let names: GatewayCookieNames

    /// - Parameters:
    ///   - name: of the session's cookie; the others begin with it.
    ///   - isSecure: whether the public origin is `https`.
    ///   - sameSite: of the session's cookie.
    ///   - maximumAge: of the session's cookie; 0 for one that ends with the browser.
    package init(name: String, isSecure: Bool, sameSite: SetCookie.SameSite, maximumAge: Duration) {
        names = GatewayCookieNames(name)
        session = SetCookie(name: name, isSecure: isSecure, sameSite: sameSite, maximumAge: maximumAge)
        start = SetCookie(
            name: name + Kind.start.suffix, isSecure: isSecure, sameSite: isSecure ? .none : .lax,
            maximumAge: SignInAttempts.lifetime)
        form = SetCookie(
            name: name + Kind.form.suffix, isSecure: isSecure, sameSite: .lax, maximumAge: .zero)
    }

    /// Finds the gateway's cookies in all `Cookie` fields of a request.
    ///
    /// Names are compared byte by byte, as browsers do. A value may be empty.
    /// - Throws: `browser.cookie_repeated`, `browser.cookie_malformed`, `browser.cookie_too_long`.
    package func find(
        in bytes: Span<UInt8>, _ fields: borrowing FieldList
    ) throws(BrowserError) -> FoundCookies {
        var found = FoundCookies()
        guard fields.has(.cookie) else { return found }
        var index = 0
        while index < fields.count {
            let field = fields[index]
            index &+= 1
            if field.known == .cookie { try find(in: bytes, field.value, &found) }
        }
        return found
    }

    /// Finds the gateway's cookies in the value of one field.
    package func find(
        in bytes: Span<UInt8>, _ value: ByteRange, _ found: inout FoundCookies
    ) throws(BrowserError) {
        var pairs = CookiePairs(value)
        while let pair = pairs.next(bytes) {
            guard let kind = names.kind(of: pair, in: bytes) else { continue }
            guard pair.isTight else { throw .cookieMalformed }
            guard pair.value.count <= CookieValue.maximumBytes else { throw .cookieTooLong }
            var index = pair.value.start
            while index < pair.value.end {
                guard CookieValue.isMember(bytes[index]) else { throw .cookieMalformed }
                index &+= 1
            }
            guard found[kind] == nil else { throw .cookieRepeated }
            found[kind] = pair.value
        }
    }
}

/// The names of the gateway's cookies, as far as requests are searched for them.
struct GatewayCookieNames: Sendable {
    private let name: [UInt8]

    /// - Parameter name: of the session's cookie.
    init(_ name: String) { self.name = Array(name.utf8) }

    /// Which of the gateway's cookies an element of a `Cookie` field is. A text without `=` is none of them.
    func kind(of pair: CookiePair, in bytes: Span<UInt8>) -> GatewayCookies.Kind? {
        guard pair.hasValue, pair.name.count >= name.count else { return nil }
        var offset = 0
        while offset < name.count {
            guard bytes[pair.name.start &+ offset] == name[offset] else { return nil }
            offset &+= 1
        }
        let rest = bytes.extracting((pair.name.start &+ offset)..<pair.name.end)
        if rest.isEmpty { return .session }
        if rest.spells(GatewayCookies.Kind.start.suffix) { return .start }
        if rest.spells(GatewayCookies.Kind.form.suffix) { return .form }
        return nil
    }
}

/// Where the gateway's cookies stand in a request's head.
package struct FoundCookies: Sendable, Equatable {
    package private(set) var session: ByteRange?
    package private(set) var start: ByteRange?
    package private(set) var form: ByteRange?

    package init() {}

    /// Whether there are none, so that every `Cookie` field can be forwarded as it is.
    package var isEmpty: Bool { session == nil && start == nil && form == nil }

    package subscript(kind: GatewayCookies.Kind) -> ByteRange? {
        get {
            switch kind {
            case .session: session
            case .start: start
            case .form: form
            }
        }
        set {
            switch kind {
            case .session: session = newValue
            case .start: start = newValue
            case .form: form = newValue
            }
        }
    }
}
