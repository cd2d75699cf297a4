internal import MartletIO

/// The host names that the admin listener accepts.
///
/// A web page can have its own name resolve to this address (DNS rebinding) and could then read the responses. Such a
/// request has the page's name in `Host`.
struct AdminHosts {
    /// In lower case; `*.` matches every subdomain.
    private let names: [String]

    init(_ names: [String]) { self.names = names }

    /// - Parameters:
    ///   - field: the value of `Host`; browsers always send one.
    ///   - local: the address that the client has connected to.
    func accept(_ field: String?, local: SocketEndpoint?) -> Bool {
        guard let field else { return true }
        guard let host = AdminHosts.host(of: field) else { return false }
        if host == "localhost" || names.contains(where: { AdminHosts.matches(host, $0) }) { return true }
        // Only the canonical spelling of an address is accepted.
        guard let address = SocketEndpoint(literal: host, port: 0) else { return false }
        if host == "127.0.0.1" || host == "::1" { return true }
        guard let local, !local.isUnix else { return address.isLoopback }
        if address.isLoopback, local.isLoopback { return true }
        return address.addressBytes == local.addressBytes
    }

    private static func matches(_ host: String, _ pattern: String) -> Bool {
        guard pattern.hasPrefix("*.") else { return host == pattern }
        let suffix = pattern.dropFirst(1)
        return host.utf8.count > suffix.utf8.count && host.hasSuffix(suffix)
    }

    /// The host of `host:port`, in lower case, without brackets and final dot; `nil` if it is malformed.
    private static func host(of field: String) -> String? {
        var rest = field.lowercased()[...]
        var host: Substring
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            host = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
            guard host.contains(":") else { return nil }
        } else {
            host = rest.prefix { $0 != ":" }
            rest = rest.dropFirst(host.count)
            if host.hasSuffix(".") {
                host = host.dropLast()
                // Names may end with the root's dot, addresses may not.
                guard SocketEndpoint(literal: String(host), port: 0) == nil else { return nil }
            }
        }
        guard !host.isEmpty, rest.isEmpty || isPort(rest) else { return nil }
        return String(host)
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.hasPrefix(":") && text.utf8.count <= 6 && text.dropFirst().utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}
