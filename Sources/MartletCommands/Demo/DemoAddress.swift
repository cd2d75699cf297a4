private import CLinux
internal import MartletConfig
internal import MartletIO

/// Where the demo listens, and the origin under which a browser on this machine reaches it.
struct DemoAddress {
    /// The listener's address. A port is chosen before the demo starts, because its configuration has the origin.
    let listen: String
    /// Such as `http://127.0.0.1:8080`; `nil` for listeners that browsers cannot use.
    let origin: String?
    /// Printed beside the gateway's address.
    let note: String?

    /// - Parameter listen: the requested address, which is valid; `nil` is the default port, or a free port if that is in
    ///   use.
    init(_ listen: String?, isSecure: Bool) {
        guard let listen else {
            let standard: UInt16 = isSecure ? 8443 : 8080
            let port = Self.available("127.0.0.1", standard)
            self.listen = "127.0.0.1:\(port ?? Self.available("127.0.0.1", 0) ?? 0)"
            note = port == nil ? "port \(standard) is in use" : nil
            origin = Self.origin(of: self.listen, isSecure: isSecure)
            return
        }
        self.listen = Self.withPort(listen)
        note = nil
        origin = Self.origin(of: self.listen, isSecure: isSecure)
    }

    /// The address with a free port for port 0; unchanged if there is none, which the listener then reports.
    private static func withPort(_ listen: String) -> String {
        guard case .ip(let host, 0) = SocketAddress(listen), let port = available(host, 0) else { return listen }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The port, or a free one for 0; `nil` if it is in use.
    private static func available(_ host: String, _ port: UInt16) -> UInt16? {
        guard let endpoint = SocketEndpoint(literal: host, port: port),
            let probe = try? Socket.listen(on: endpoint, sharesPort: false, backlog: 1)
        else { return nil }
        defer { close(probe) }
        return Socket.localAddress(probe)?.port
    }

    /// Loopback for a listener on all addresses. Clear text is for loopback alone: the gateway accepts no other origin
    /// without TLS.
    private static func origin(of listen: String, isSecure: Bool) -> String? {
        guard case .ip(let host, let port) = SocketAddress(listen), port != 0 else { return nil }
        let reachable = ["0.0.0.0": "127.0.0.1", "::": "::1"][host] ?? host
        guard isSecure || SocketEndpoint(literal: reachable, port: port)?.isLoopback == true else { return nil }
        let name = reachable.contains(":") ? "[\(reachable)]" : reachable
        return "\(isSecure ? "https" : "http")://\(name):\(port)"
    }
}
