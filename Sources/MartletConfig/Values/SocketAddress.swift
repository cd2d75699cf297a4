/// An address to listen on or connect to.
@frozen package enum SocketAddress: Sendable, Hashable {
    /// An IPv4 literal, an IPv6 literal without brackets, and a port (0 lets the system choose).
    case ip(host: String, port: UInt16)
    case unix(path: String)
    /// A listening socket inherited as a descriptor (`fd:3`).
    case descriptor(Int32)
}

extension SocketAddress: ConfigurationValue, Spelling {
    static func text(of address: SocketAddress) -> String? { address.configurationText }

    /// `127.0.0.1:8080`, `[::]:8443` or `unix:/run/martlet.sock`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard let address = SocketAddress(text, relativeTo: node.location.file) else {
            throw node.error(
                .configBadAddress,
                "\(quoted(text)) is not an address such as 127.0.0.1:8080, [::]:8443, unix:/run/martlet.sock or fd:3"
                    + Self.hint(for: text))
        }
        self = address
    }

    /// The addresses that were probably meant by a port alone, or by a port of `localhost`.
    private static func hint(for text: String) -> String {
        let isLocal = text.hasPrefix("localhost:")
        let digits = isLocal ? text.dropFirst(10) : text.hasPrefix(":") ? text.dropFirst() : text[...]
        guard let port = UInt16(digits), "\(port)" == digits else { return "" }
        return isLocal
            ? " (did you mean '127.0.0.1:\(port)'?)"
            : " (did you mean '0.0.0.0:\(port)', or '127.0.0.1:\(port)' for this machine alone?)"
    }

    /// Parses an address, such as the value of `--listen`; `nil` if invalid. A relative socket path is relative to
    /// `file`.
    package init?(_ text: String, relativeTo file: String = "") {
        if text.hasPrefix("unix:") {
            guard let path = Self.socketPath(text.dropFirst(5), relativeTo: file) else { return nil }
            self = .unix(path: path)
            return
        }
        if text.hasPrefix("fd:") {
            guard let number = Int32(text.dropFirst(3)), number > 2, "fd:\(number)" == text else { return nil }
            self = .descriptor(number)
            return
        }
        guard let (host, port) = HostAndPort.parse(Array(text.utf8)), let port, HostAndPort.addressBytes(host) != nil
        else {
            return nil
        }
        self = .ip(host: host, port: port)
    }

    /// A path that fits into a `sockaddr_un`.
    static func socketPath(_ text: Substring, relativeTo file: String) -> String? {
        let path = FilePath(String(text), relativeTo: file).text
        let isUsable = !text.isEmpty && path.utf8.count <= 107 && path.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        return isUsable ? path : nil
    }

    /// Whether only this machine can reach it.
    package var isLocal: Bool {
        switch self {
        case .ip(let host, _): HostAndPort.isLoopback(host)
        case .unix: true
        // Only the process that opened it knows; do not warn.
        case .descriptor: true
        }
    }

    /// The address as written in `config.yaml`.
    package var configurationText: String {
        switch self {
        case .ip(let host, let port): host.utf8.contains(0x3A) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        case .descriptor(let number): "fd:\(number)"
        }
    }
}
