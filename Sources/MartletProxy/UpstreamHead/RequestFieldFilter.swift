internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletRouter

/// Decides which fields of a client an upstream gets, and writes those with the gateway's own.
///
/// The client's copies of identity, forwarding and hop-by-hop fields are removed; runs of forwarded fields are copied
/// whole; the gateway's fields come last, so that no client field can replace them.
struct RequestFieldFilter: ~Copyable {
    /// Client fields that were seen.
    private struct Seen: OptionSet {
        let rawValue: UInt8

        static let forwardedFor = Seen(rawValue: 1)
        static let forwarded = Seen(rawValue: 2)
        /// A forwarded one.
        static let proto = Seen(rawValue: 4)
        /// A forwarded one.
        static let forwardedHost = Seen(rawValue: 8)
        /// A forwarded one.
        static let host = Seen(rawValue: 16)
        /// One that was held back.
        static let methodOverride = Seen(rawValue: 32)
        /// A forwarded one.
        static let via = Seen(rawValue: 64)
    }

    let rules: RequestFieldRules
    private var seen: Seen = []
    private var runStart = 0
    private var runEnd = 0

    @inline(__always)
    init(_ rules: RequestFieldRules) { self.rules = rules }

    private var isTrusted: Bool { rules.contains(.isTrusted) }

    /// Begins with the bytes before the fields.
    @inline(__always)
    mutating func begin(with opening: ByteRange) {
        runStart = opening.start
        runEnd = opening.end
    }

    /// Copies a forwarded line; contiguous lines are copied together.
    @inline(__always)
    mutating func copy(_ line: ByteRange, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        let start = Int(line.start)
        if runEnd != start {
            unsafe endFields(bytes, into: &out)
            runStart = start
        }
        runEnd = Int(line.end)
    }

    /// Copies the last run of forwarded lines.
    @inline(__always)
    mutating func endFields(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        if runEnd > runStart { unsafe out.append(unsafe UnsafeBufferPointer(rebasing: bytes[runStart..<runEnd])) }
        runStart = 0
        runEnd = 0
    }

    /// Whether a client field, of the head or a trailer, is forwarded, by itself: the one function that decides it.
    ///
    /// ``UpstreamHeadWriter`` searches all values of a head together, and asks this only where one holds a token.
    mutating func forwardsAlone(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: borrowing Snapshot, _ route: Int
    ) -> Bool {
        unsafe !holdsOwnToken(field, bytes) && forwards(field, bytes, snapshot, route)
    }

    /// Whether a proxy that forwards by itself has to hold a field back: an identity header, or a credential.
    ///
    /// Cookies stay: the proxy cannot delete one of several.
    mutating func isForNoAPI(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: borrowing Snapshot, _ route: Int
    ) -> Bool {
        let kind = unsafe ClientField(code: snapshot.clientFields.value(of: field, in: bytes.span))
        if kind == .identity { return true }
        guard field.known != .cookie, !rules.contains(.keepsOwnTokens) else { return false }
        if unsafe holdsOwnToken(field, bytes) { return true }
        if kind == .authorization || kind == .credential { return unsafe !forwards(field, bytes, snapshot, route) }
        let name = unsafe FieldLetters.of(String(decoding: bytes[field.name], as: UTF8.self))
        return snapshot.authentication.headerNames(on: route).contains { FieldLetters.of($0) == name }
    }

    /// Whether a field has one of the gateway's own tokens in its value, and the route does not forward such.
    func holdsOwnToken(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        // A host may be called like one.
        unsafe !rules.contains(.keepsOwnTokens) && field.known != .host && OwnToken.appears(in: bytes[field.value])
    }

    /// Whether a client field is forwarded by its name; of values only that of `Authorization` is looked at.
    @inline(__always)
    mutating func forwards(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: borrowing Snapshot, _ route: Int
    ) -> Bool {
        if field.isNeverForwarded { return false }
        let all = unsafe bytes.span
        switch ClientField(code: snapshot.clientFields.value(of: field, in: all)) {
        case .plain: break
        case .host:
            // One space before the value and none behind it: the length of "Host: " and of a line break.
            let before = field.value.start &- 1
            guard rules.contains(.keepsHost), field.line.count == field.value.count &+ 8,
                before == field.name.end &+ 1, unsafe bytes[before] == 0x20
            else { return false }
            seen.insert(.host)
            return true
        case .identity, .own, .trailer: return false
        case .expect: return rules.contains(.keepsExpect)
        case .authorization:
            guard !rules.contains(.dropsAuthorization),
                unsafe rules.contains(.keepsOwnTokens) || !OwnToken.appears(inAuthorization: bytes[field.value])
            else { return false }
        case .credential: guard rules.contains(.keepsOwnTokens) else { return false }
        case .cookie: guard !rules.contains(.cutsCookies) else { return false }
        case .forwarded:
            // Written anew, and extended where the peer is trusted.
            seen.insert(.forwarded)
            return false
        case .forwardedFor:
            seen.insert(.forwardedFor)
            return false
        case .forwardedProto:
            guard isTrusted else { return false }
            seen.insert(.proto)
        case .forwardedHost:
            guard isTrusted else { return false }
            seen.insert(.forwardedHost)
        case .proxyOnly: guard isTrusted else { return false }
        case .methodOverride:
            if !isTrusted, snapshot.routes.restrictsMethods {
                seen.insert(.methodOverride)
                return false
            }
        case .via: seen.insert(.via)
        case .requestIDLookAlike: if field.name.count == KnownField.xRequestID.name.utf8CodeUnitCount { return false }
        }
        // A set is retained to be searched: its filter comes first.
        guard rules.contains(.hasRemovals), snapshot.compiledRoutes[route].removals.mayContain(field, in: all) else {
            return true
        }
        return unsafe !removes(field, bytes, snapshot, route)
    }

    /// Whether the route removes a field that its filter lets through.
    @inline(never)
    private func removes(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: borrowing Snapshot, _ route: Int
    ) -> Bool {
        unsafe snapshot.removals[route].contains(field, in: bytes.span)
    }

    /// Whether there is anything to look at a second time.
    var needsReview: Bool { !seen.isDisjoint(with: [.methodOverride, .via]) }

    /// Whether another proxy has forwarded the request, or its client claims so.
    var hasPassedProxy: Bool { seen.contains(.via) }

    /// Whether a method override was held back until it is known whether methods matter for the request.
    var hasHeldOverride: Bool { seen.contains(.methodOverride) }

    /// Whether `Host` should be forwarded unchanged and was not.
    var isHostMissing: Bool { rules.contains(.keepsHost) && !seen.contains(.host) }

    /// Whether a trusted peer's `X-Forwarded-For` is kept and extended.
    var extendsChain: Bool { seen.contains(.forwardedFor) && isTrusted }

    /// Whether a trusted peer's `Forwarded` is kept and extended, and says what `X-Forwarded-*` do not say.
    var extendsForwarded: Bool { seen.contains(.forwarded) && isTrusted }

    /// Writes `X-Forwarded-*` after the list of addresses, and `Forwarded` where a client sent it; the caller ends the
    /// last line.
    @inline(__always)
    mutating func writeForwarding(
        _ address: AddressText, authority: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        out.append(address)
        // A client that is not a proxy has none of these: three texts become one.
        if seen.isDisjoint(with: [.proto, .forwardedHost]), !authority.isEmpty {
            if rules.contains(.isSecure) {
                out.append("\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: ")
            } else {
                out.append("\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: ")
            }
            unsafe out.append(authority)
        } else {
            unsafe writeMissingFields(scheme: nil, host: authority, into: &out)
        }
        if seen.contains(.forwarded) { unsafe writeForwarded(address, authority: authority, into: &out) }
    }

    /// Writes the fields that a trusted peer has not sent.
    /// - Parameters:
    ///   - scheme: where another one than the listener's is known.
    ///   - host: empty where none is known.
    @inline(never)
    func writeMissingFields(scheme: String?, host: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        if !seen.contains(.proto) {
            out.append("\r\nX-Forwarded-Proto: ")
            out.append(text: scheme ?? (rules.contains(.isSecure) ? "https" : "http"))
        }
        if !seen.contains(.forwardedHost), !host.isEmpty {
            out.append("\r\nX-Forwarded-Host: ")
            unsafe out.append(host)
        }
    }

    /// Writes `Forwarded` without what the client sent (RFC 7239 §4).
    @inline(never)
    private func writeForwarded(
        _ address: AddressText, authority: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        out.append("\r\nForwarded: ")
        unsafe writeElement(address, authority: authority, into: &out)
    }

    /// Writes the gateway's own element of `Forwarded`.
    func writeElement(_ address: AddressText, authority: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        out.append("for=")
        out.append(address.isV6 ? "\"[" : "")
        out.append(address)
        out.append(address.isV6 ? "]\"" : "")
        out.append(rules.contains(.isSecure) ? ";proto=https" : ";proto=http")
        guard !authority.isEmpty else { return }
        out.append(";host=\"")
        unsafe out.append(authority)
        out.append("\"")
    }
}
