/// Where a browser may return to: paths of this gateway, and pages of listed origins.
package struct ReturnRule: Sendable {
    /// The maximum length of a `return_to`, as it was sent and as it is written to `Location`.
    package static let maximumBytes = 2048

    /// Endpoints that no one may return to: they would sign in again, or out.
    private static let excluded = ["sign-in", "start", "callback", "sign-out"]

    private let ownOrigin: [UInt8]
    private let otherOrigins: [String]
    private let signInPath: String
    private let excludedPaths: [[[UInt8]]]

    /// - Parameters:
    ///   - origin: the public origin of this gateway, as browsers write it.
    ///   - otherOrigins: further origins that may be returned to, as browsers write them.
    ///   - signInPath: `sessions.path`.
    package init(origin: String, otherOrigins: [String], signInPath: String) {
        ownOrigin = Array(origin.utf8)
        self.otherOrigins = otherOrigins
        self.signInPath = signInPath
        excludedPaths = Self.excluded.map { ReturnPath.segments(of: "\(signInPath)/\($0)") }
    }

    /// The target for the value of a `return_to`; `/` for everything that is not allowed.
    /// - Parameter value: decoded once, as every argument of a query or a form; `nil` if there is none.
    package func target(of value: String?) -> ReturnTarget { target(ofBytes: Array((value ?? "").utf8)) }

    /// The target for the bytes of a `return_to`, which may be of any encoding.
    package func target(ofBytes value: [UInt8]) -> ReturnTarget {
        guard value.count <= Self.maximumBytes else { return .home }
        let text = value.prefix { $0 != UInt8(ascii: "#") }
        guard !text.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return .home }
        if text.first == UInt8(ascii: "/") { return checked(Array(text), after: "") ?? .home }
        if let rest = Self.rest(of: text, after: ownOrigin) { return checked(rest, after: "") ?? .home }
        for origin in otherOrigins {
            if let rest = Self.rest(of: text, after: Array(origin.utf8)) {
                return checked(rest, after: origin) ?? .home
            }
        }
        return .home
    }

    /// The location of the sign-in page that returns to a target.
    package func signInLocation(returningTo target: ReturnTarget) -> String {
        target == .home ? "\(signInPath)/sign-in" : "\(signInPath)/sign-in?return_to=\(target.argument)"
    }

    /// Path and query of a URL of exactly this origin.
    private static func rest(of text: ArraySlice<UInt8>, after origin: [UInt8]) -> [UInt8]? {
        guard text.starts(with: origin) else { return nil }
        let rest = Array(text.dropFirst(origin.count))
        switch rest.first {
        case nil, UInt8(ascii: "?"): return [UInt8(ascii: "/")] + rest
        case UInt8(ascii: "/"): return rest
        // A longer host, a port, or the end of a user name.
        default: return nil
        }
    }

    private func checked(_ target: [UInt8], after origin: String) -> ReturnTarget? {
        let path = Array(target.prefix { $0 != UInt8(ascii: "?") })
        guard let spellings = ReturnPath.spellings(of: path),
            spellings.allSatisfy({ $0.isPlain && !$0.isBelow(excludedPaths) })
        else { return nil }
        let text = origin + URLEscaping.escaped(target, stay: Self.isURLByte)
        return text.utf8.count <= Self.maximumBytes ? ReturnTarget(text) : nil
    }

    /// What RFC 3986 allows, so that no browser and no server changes or splits it.
    private static func isURLByte(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && !"\"<>\\^`{|}".utf8.contains(byte)
    }
}
