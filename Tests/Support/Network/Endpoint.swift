/// Where a test connects to or listens.
package enum Endpoint: Sendable, Hashable, CustomStringConvertible {
    case tcp(host: String, port: UInt16)
    case unix(String)

    /// Reads `127.0.0.1:80`, `[::1]:80` or `unix:/path`, as the gateway logs it.
    package init(text: String) throws {
        if text.hasPrefix("unix:") {
            self = .unix(String(text.dropFirst(5)))
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            throw TestFailure("not an address: \(text)")
        }
        let host = text[..<colon].drop { $0 == "[" }.prefix { $0 != "]" }
        self = .tcp(host: String(host), port: port)
    }

    package static func loopback(_ port: UInt16) -> Endpoint { .tcp(host: "127.0.0.1", port: port) }

    package var port: UInt16 {
        switch self {
        case .tcp(_, let port): port
        case .unix: 0
        }
    }

    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
