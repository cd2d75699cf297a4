package import MartletCore

/// `admin:`.
@frozen package struct AdminConfiguration: KeyedBlock {
    /// Who may read `/metrics` from another machine.
    @frozen package enum Metrics: String, ConfigurationChoice { case token, open }

    package var address: Located<SocketAddress>
    package var socket: Located<SocketAddress>?
    package var hosts: [String] = []
    package var token: Located<Secret>?
    package var metrics = Metrics.token
    package var tls: ListenerTLS?
    /// Whether it is the default because there is no `admin:` block.
    package var isImplied = false

    /// The permission bits of its Unix sockets: what only their owner and group may open.
    private static let socketMode: UInt16 = 0o660

    /// The listener of its address, without HTTP/2: its clients are commands, probes and one page.
    package var listener: ListenerConfiguration {
        var listener = AdminConfiguration.listener(address)
        listener.tls = tls
        return listener
    }

    /// All of its listeners, that of its address first.
    package var listeners: [ListenerConfiguration] {
        [listener] + (socket.map { [AdminConfiguration.listener($0)] } ?? [])
    }

    private static func listener(_ address: Located<SocketAddress>) -> ListenerConfiguration {
        var listener = ListenerConfiguration(address: address, reusePort: false)
        listener.offersHTTP2 = false
        if case .unix = address.value {
            var file = SocketFilePermissions()
            file.mode = socketMode
            listener.socketFile = file
        }
        return listener
    }

    init() { self.init(at: .none) }

    init(at location: SourceLocation) { address = Located(.ip(host: "127.0.0.1", port: 9901), at: location) }

    static let keys: [ConfigurationKey<Self>] = [
        .key("address", \.address, "The address of `/livez`, `/readyz`, `/healthz`, `/metrics` and the dashboard."),
        .key(
            "socket", \.socket,
            "A Unix socket beside the address, `unix:/run/martlet/admin.sock`, that only the gateway's user and group may open: over it changes need no credential."
        ),
        .key(
            "hosts", \.hosts, as: [HostPattern].self,
            "Accepted names in `Host`, besides `localhost` and the listener's address; `*.example.com` is its subdomains."
        ),
        .key(
            "metrics", \.metrics,
            "Whether `/metrics` requires the token from other machines (`token`) or not (`open`)."),
        .block("tls", \.tls, "TLS and its certificates; clear text if absent."),
        .secret(
            "token", \.token,
            "Authorizes changes, and reading from other machines, as `Authorization: Bearer`; fewer than 32 bytes are a warning."
        ),
        .check { $0.check(&$1) },
    ]

    private static let minimumTokenBytes = 32

    private func check(_ reader: inout ConfigurationReader) {
        if let socket {
            guard case .unix = socket.value else {
                return reader.reject(
                    "socket", .configBadAddress, "must be a Unix socket, such as unix:admin.sock")
            }
        }
        if let token { checkToken(token.value, reader.has("token_file") ? "token_file" : "token", &reader) }
        if let tls, tls.clientAuthentication == .required {
            reader.diagnostics.warning(
                .configAdminUnreachable, at: reader.node("tls")?["client_auth"]?.location ?? address.location,
                "client_auth: the commands of martlet and most probes have no client certificate, and cannot connect; "
                    + "with optional, changes require one or the token all the same")
        }
        guard !address.value.isLocal else { return }
        let isAuthenticated = reader.has("token") || reader.has("token_file") || tls?.clientAuthorityFile != nil
        if !isAuthenticated {
            reader.diagnostics.warning(
                .configInsecure, at: address.location,
                "the admin listener is reachable from other machines, which without token_file may only use /livez and "
                    + (metrics == .open ? "/readyz, and read /metrics" : "/readyz; for Prometheus: metrics: open"))
        } else if !reader.has("tls") {
            reader.diagnostics.warning(
                .configInsecure, at: address.location,
                "the admin listener is reachable from other machines without tls, so its token can be read on the way")
        }
    }

    private func checkToken(_ token: Secret, _ key: String, _ reader: inout ConfigurationReader) {
        let isHeaderText = token.withBytes { bytes in bytes.allSatisfy { (0x21...0x7E).contains($0) } }
        if !isHeaderText {
            reader.reject(key, .configBadValue, "must be visible ASCII characters, without spaces")
        } else if token.count < Self.minimumTokenBytes {
            reader.warn(
                key, .configInsecure, "shorter than \(Self.minimumTokenBytes) bytes, which may be guessed")
        }
    }

    /// The configuration without an `admin:` block.
    static func implied(at location: SourceLocation) -> AdminConfiguration {
        var standard = AdminConfiguration(at: location)
        standard.isImplied = true
        return standard
    }
}
