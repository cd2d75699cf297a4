internal import MartletCore

/// The rules for a redirect URI: https, a domain name, no fragment.
///
/// Beyond them, loopback is accepted, over plain http too, so that a gateway on this machine can be tried.
enum RedirectURI {
    private static let maximumBytes = 2048
    private static let loopback = ["localhost", "127.0.0.1", "[::1]"]

    static func isValid(_ text: String) -> Bool {
        guard text.utf8.count <= maximumBytes, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            !text.utf8.contains(where: { [UInt8(ascii: "#"), UInt8(ascii: "\\"), UInt8(ascii: "\"")].contains($0) })
        else { return false }
        if let rest = tail(of: text, after: "https://") {
            return isDomain(host(of: rest)) || loopback.contains(host(of: rest) ?? "")
        }
        if let rest = tail(of: text, after: "http://") { return loopback.contains(host(of: rest) ?? "") }
        return false
    }

    /// The host of a valid redirect URI, without its port.
    static func host(of uri: String) -> String? {
        (tail(of: uri, after: "https://") ?? tail(of: uri, after: "http://")).flatMap { host(of: $0) }
    }

    private static func tail(of text: String, after scheme: String) -> Substring? {
        text.hasPrefix(scheme) ? text.dropFirst(scheme.count) : nil
    }

    /// The host, without a valid port; `nil` for anything else, such as user information.
    private static func host(of rest: Substring) -> String? {
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { return nil }
        let end = authority.hasPrefix("[") ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : nil
        let host = end.map { authority[..<$0] } ?? authority.prefix { $0 != ":" }
        let port = authority[host.endIndex...]
        guard port.isEmpty || (port.first == ":" && UInt16(port.dropFirst()) != nil) else { return nil }
        return String(host)
    }

    /// Whether it is a domain name with at least two labels, and no address.
    private static func isDomain(_ host: String?) -> Bool {
        guard let host, host.utf8.count <= 253 else { return false }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count >= 2, let last = labels.last, !last.utf8.allSatisfy(isDigit) else { return false }
        return labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.utf8.first != UInt8(ascii: "-")
                && label.utf8.last != UInt8(ascii: "-") && label.utf8.allSatisfy(isAllowed)
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        isDigit(byte) || byte == UInt8(ascii: "-")
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}

/// The registered redirect URIs of clients. A client without any may use every valid one.
struct RedirectURIs: Sendable {
    /// How many clients, and redirect URIs of each, may be registered.
    static let capacity = 64

    private var all: [(clientID: String, redirectURIs: [String])] = []

    subscript(clientID: String) -> [String]? { all.first { $0.clientID.hasSameBytes(as: clientID) }?.redirectURIs }

    /// Registers those of a client, in exchange for its former ones; none at all removes it.
    /// - Returns: whether there was room for them.
    mutating func register(_ redirectURIs: [String], of clientID: String) -> Bool {
        all.removeAll { $0.clientID.hasSameBytes(as: clientID) }
        guard !redirectURIs.isEmpty else { return true }
        guard all.count < Self.capacity, redirectURIs.count <= Self.capacity else { return false }
        all.append((clientID, redirectURIs))
        return true
    }
}
