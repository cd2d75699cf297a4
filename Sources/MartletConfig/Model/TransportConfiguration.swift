internal import MartletCore

/// One entry of `server.listen`.
@frozen package struct ListenerConfiguration: Sendable {
    package var address: Located<SocketAddress>
    package var reusePort: Bool
    package var isIPv6Only = false
    package var tls: ListenerTLS?
    package var offersHTTP2 = true
    package var acceptsProxyProtocol = false
    package var isTrusted = false
    /// The port of the https URL that every request is redirected to (308); `nil` serves requests.
    package var redirectsToHTTPSPort: UInt16?
    package var health: HealthPath?
    /// Owner and mode of a Unix socket; `nil` leaves them to the process and its umask.
    package var socketFile: SocketFilePermissions?

    package init(address: Located<SocketAddress>, reusePort: Bool) {
        self.address = address
        self.reusePort = reusePort
    }

    /// Whether the listener accepts IPv4 if it is one for `[::]`: unless it is not to, or another of the listeners has an
    /// IPv4 address with its port.
    package func acceptsIPv4(beside listeners: [ListenerConfiguration]) -> Bool {
        guard !isIPv6Only, case .ip(_, let port) = address.value else { return false }
        return !listeners.contains { other in
            guard case .ip(let host, port) = other.address.value else { return false }
            return port != 0 && !host.contains(":")
        }
    }
}

/// `owner`, `group` and `mode` of a Unix socket.
@frozen package struct SocketFilePermissions: Sendable, Hashable {
    /// A user's name or number.
    package var owner: String?
    /// A group's name or number.
    package var group: String?
    /// Permission bits, such as `0o660`.
    package var mode: UInt16?

    package init() {}
}

/// A certificate chain and its key, as PEM files.
@frozen package struct CertificateFiles: Sendable, Hashable {
    package var certificate: Located<String>
    package var key: Located<String>

    package init(certificate: Located<String>, key: Located<String>) {
        self.certificate = certificate
        self.key = key
    }
}

/// `tls:` of a listener.
@frozen package struct ListenerTLS: Sendable, Hashable {
    /// The minimum version.
    @frozen package enum Version: String, ConfigurationChoice {
        case v12 = "1.2"
        case v13 = "1.3"
    }

    /// Whether client certificates are requested.
    @frozen package enum ClientAuthentication: String, ConfigurationChoice { case none, optional, required }

    /// Chosen by SNI; the first one is the default.
    package var certificates: [CertificateFiles]
    package var minimumVersion = Version.v12
    /// OpenSSL cipher names for TLS 1.2, separated by colons; `nil` is the built-in list.
    package var ciphers: Located<String>?
    package var cipherSuites: Located<String>?
    package var clientAuthorityFile: Located<String>?
    package var clientAuthentication = ClientAuthentication.none
    /// `Strict-Transport-Security: max-age`; `nil` sends none.
    package var strictTransport: Duration?

    package init(certificates: [CertificateFiles]) { self.certificates = certificates }
}

/// `server.http2`.
@frozen package struct HTTP2Configuration: Sendable, Equatable {
    package var maximumConcurrentStreams = SharedBound.streams.total
    package var maximumResets = 200
    /// Flow-control window in bytes: how much of a request body may arrive before any of it is forwarded.
    package var initialWindow = 64 * 1024

    package init() {}
}

/// Protocol version, TLS and PROXY protocol of connections to an upstream.
@frozen package struct UpstreamTransport: Sendable, Hashable {
    /// HTTP/1.1 or HTTP/2.
    @frozen package enum Version: String, ConfigurationChoice { case http1, h2 }

    /// `protocol`: for https and Unix endpoints.
    package var version = Version.http1
    package var tls = UpstreamTLS()
    /// Whether connections begin with a PROXY protocol header (version 2) that names the client.
    package var sendsProxyProtocol = false

    package init() {}
}

/// `upstreams.*.tls`.
@frozen package struct UpstreamTLS: Sendable, Hashable {
    package var authorityFile: Located<String>?
    package var serverName: String?
    package var certificate: CertificateFiles?
    package var verifies = true

    package init() {}
}

/// `upgrade:` of a route.
@frozen package struct UpgradeConfiguration: Sendable, Equatable {
    /// What happens to tunnels and long responses whose credential has expired or was revoked.
    @frozen package enum CloseOnExpiry: Sendable, Equatable {
        case never
        /// They end this long afterwards; zero is immediately.
        case after(Duration)
    }

    /// Lower-case names of protocols that a request may upgrade to.
    package var protocols = ["websocket"]
    package var closeOnExpiry = CloseOnExpiry.after(.zero)
    package var idle = Duration.seconds(300)
    package var maximumConnectionAge: Duration?

    package init() {}

    /// No upgrades.
    package static var none: UpgradeConfiguration {
        var configuration = UpgradeConfiguration()
        configuration.protocols = []
        return configuration
    }
}
