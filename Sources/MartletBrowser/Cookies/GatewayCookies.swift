internal import MartletCore
package import MartletHTTP

/// The cookies that the gateway sets: their names, how they are set, and how they are found in heads.
///
/// A class, so that the request path passes one reference instead of copying its texts.
package final class GatewayCookies: Sendable {
    /// What a cookie is for.
    package enum Kind: Sendable, CaseIterable {
        case session
        /// A sign-in that waits for a provider (``SignInAttempt``); each has one of its own.
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
    /// Sets the cookies of sign-ins that wait for a provider; ``start(_:)`` gives that of one.
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
            maximumAge: SignInAttempt.lifetime)
        form = SetCookie(
            name: name + Kind.form.suffix, isSecure: isSecure, sameSite: .lax, maximumAge: .zero)
    }

    /// Sets the cookie of one attempt.
    /// - Parameter id: ``SignInAttempt/cookieID``.
    package func start(_ id: String) -> SetCookie { start.named("\(start.name)-\(id)") }

    /// The `Set-Cookie` that deletes a cookie of the gateway.
    /// - Parameter name: of one that was found in a request.
    package func deletion(of name: String) -> String {
        if name.hasSameBytes(as: session.name) { return session.deletion }
        if name.hasSameBytes(as: form.name) { return form.deletion }
        return start.named(name).deletion
    }

    /// What most requests have of the gateway's cookies: at most one of each kind, all of them of use.
    package struct Plain: Sendable, Equatable {
        package fileprivate(set) var session: ByteRange?
        /// Whether there are none, so that every `Cookie` field can be forwarded as it is.
        package fileprivate(set) var isEmpty = true
    }

    /// The gateway's cookies in all `Cookie` fields of a request, without an allocation or a reference; `nil` if one of
    /// them is of no use, or there are several of a kind, which ``find(in:_:)`` takes apart.
    package func findPlain(in bytes: Span<UInt8>, _ fields: borrowing FieldList) -> Plain? {
        var plain = Plain()
        guard fields.has(.cookie) else { return plain }
        var (hasStart, hasForm) = (false, false)
        var index = 0
        while index < fields.count {
            let field = fields[index]
            index &+= 1
            guard field.known == .cookie else { continue }
            var pairs = CookiePairs(field.value)
            while let pair = pairs.next(bytes) {
                guard let kind = names.kind(of: pair, in: bytes) else { continue }
                guard Self.formProblem(of: pair, bytes) == .no, !isVoid(pair, kind) else { return nil }
                plain.isEmpty = false
                switch kind {
                case .session:
                    guard plain.session == nil else { return nil }
                    plain.session = pair.value
                case .start:
                    guard !hasStart else { return nil }
                    hasStart = true
                case .form:
                    guard !hasForm else { return nil }
                    hasForm = true
                }
            }
        }
        return plain
    }

    /// Finds the gateway's cookies in all `Cookie` fields of a request.
    ///
    /// Names are compared byte by byte, as browsers do.
    package func find(in bytes: Span<UInt8>, _ fields: borrowing FieldList) -> FoundCookies {
        var found = FoundCookies()
        guard fields.has(.cookie) else { return found }
        var index = 0
        while index < fields.count {
            let field = fields[index]
            index &+= 1
            if field.known == .cookie { find(in: bytes, field.value, &found) }
        }
        return found
    }

    /// Finds the gateway's cookies in the value of one field.
    package func find(in bytes: Span<UInt8>, _ value: ByteRange, _ found: inout FoundCookies) {
        var pairs = CookiePairs(value)
        while let pair = pairs.next(bytes) {
            guard let kind = names.kind(of: pair, in: bytes) else { continue }
            found.isEmpty = false
            let name = bytes.extracting(pair.name.bounds)
            let problem = Self.problem(of: pair, kind, bytes, found)
            guard problem == nil, !isVoid(pair, kind) else {
                found.reject(kind, Self.text(name), problem)
                continue
            }
            found.add(kind, pair)
        }
    }

    /// Whether a cookie is of no use, but no error either: an empty one, or one of a form that is not set any more.
    private func isVoid(_ pair: CookiePair, _ kind: Kind) -> Bool {
        pair.value.isEmpty || kind == .start && pair.name.count == start.name.utf8.count
    }

    private static func problem(
        of pair: CookiePair, _ kind: Kind, _ bytes: Span<UInt8>, _ found: borrowing FoundCookies
    ) -> BrowserError? {
        switch formProblem(of: pair, bytes) {
        case .malformed: .cookieMalformed
        case .tooLong: .cookieTooLong
        case .no: found.has(kind, named: bytes.extracting(pair.name.bounds), in: bytes) ? .cookieRepeated : nil
        }
    }

    private enum FormProblem { case no, malformed, tooLong }

    /// What is wrong with a cookie by itself.
    private static func formProblem(of pair: CookiePair, _ bytes: Span<UInt8>) -> FormProblem {
        guard pair.isTight else { return .malformed }
        guard pair.value.count <= CookieValue.maximumBytes else { return .tooLong }
        let value = bytes.extracting(pair.value.bounds)
        // What the gateway sets has nothing else.
        var index = value.endOfTokenText()
        while index < value.count {
            guard CookieValue.isMember(value[index]) else { return .malformed }
            index &+= 1
        }
        return .no
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
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
        if rest.spells(GatewayCookies.Kind.form.suffix) { return .form }
        return Self.isStart(rest) ? .start : nil
    }

    /// `-start-` and the name of an attempt; alone it is that of former versions.
    private static func isStart(_ rest: Span<UInt8>) -> Bool {
        let length = GatewayCookies.Kind.start.suffix.utf8.count
        guard rest.count >= length, rest.extracting(0..<length).spells(GatewayCookies.Kind.start.suffix) else {
            return false
        }
        guard rest.count > length else { return true }
        guard rest.count == length &+ 1 &+ SignInAttempt.cookieIDLength, rest[length] == UInt8(ascii: "-") else {
            return false
        }
        var index = length &+ 1
        while index < rest.count {
            let byte = rest[index]
            guard (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) else { return false }
            index &+= 1
        }
        return true
    }
}

/// Where the gateway's cookies stand in a request's head.
package struct FoundCookies: Sendable, Equatable {
    /// The cookie of an attempt.
    package struct Start: Sendable, Equatable {
        package let name: ByteRange
        package let value: ByteRange
    }

    package private(set) var session: ByteRange?
    /// Those of sign-ins that wait for a provider.
    package private(set) var starts: [Start] = []
    package private(set) var form: ByteRange?
    /// Whether there are none, so that every `Cookie` field can be forwarded as it is.
    package internal(set) var isEmpty = true
    /// The names of those that cannot be used: they count as absent, and are to be deleted.
    package private(set) var unusable: [String] = []
    /// Why the first of them cannot be used; `nil` for those that are only empty.
    package private(set) var problem: BrowserError?

    package init() {}

    /// Whether one of that name was found already, used or not.
    func has(_ kind: GatewayCookies.Kind, named name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        for other in unusable where name.spells(other) { return true }
        switch kind {
        case .session: return session != nil
        case .form: return form != nil
        case .start:
            for other in starts where name.count == other.name.count {
                var index = 0
                while index < name.count, name[index] == bytes[other.name.start &+ index] { index &+= 1 }
                if index == name.count { return true }
            }
            return false
        }
    }

    mutating func add(_ kind: GatewayCookies.Kind, _ pair: CookiePair) {
        switch kind {
        case .session: session = pair.value
        case .form: form = pair.value
        case .start: starts.append(Start(name: pair.name, value: pair.value))
        }
    }

    /// Neither of two cookies of one name counts, because it is not known which one the gateway has set.
    mutating func reject(_ kind: GatewayCookies.Kind, _ name: String, _ error: BrowserError?) {
        if problem == nil { problem = error }
        switch kind {
        case .session: session = nil
        case .form: form = nil
        case .start: break
        }
        guard !unusable.contains(where: { $0.hasSameBytes(as: name) }) else { return }
        unusable.append(name)
    }
}
