package import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
package import MartletResponder
package import MartletTLS

/// A listening socket that a loop accepts from.
package struct ListenerSocket: Sendable {
    /// Who responds to its requests.
    package enum Role: Sendable {
        /// Requests are routed to upstreams.
        case gateway
        /// Requests that the handler accepts are handled by it, all others are routed.
        case local(ListenerHandler)
    }

    /// Distinguishes listeners across reloads.
    package let id: Int32
    package let fd: Int32
    /// Other loops accept from the same socket: each connection wakes one of them only.
    package let isShared: Bool
    /// Another process may listen on the same port (`reuse_port`), and serves who is not accepted here.
    let sharesPort: Bool
    package let role: Role
    /// What the configuration says of the listener.
    let rules: ListenerRules
    /// Encrypts its connections; `nil` in clear text.
    package let tls: TLSServerContext?

    var handler: ListenerHandler? { if case .local(let handler) = role { handler } else { nil } }

    /// Registers the socket with a poller.
    func register(with poller: borrowing Poller) throws(IOError) {
        let interest: Readiness = isShared ? [.readable, .exclusive] : .readable
        try poller.add(fd, interest, token: EventToken(listener: id).raw)
    }

    /// - Parameters:
    ///   - configuration: `nil` for a listener that is not configured in the file.
    ///   - tls: for a listener with TLS.
    package init(
        id: Int32, fd: Int32, isShared: Bool, role: Role, configuration: ListenerConfiguration? = nil,
        tls: TLSServerContext? = nil
    ) {
        self.id = id
        self.fd = fd
        self.isShared = isShared
        self.role = role
        self.tls = tls
        if case .ip = configuration?.address.value, configuration?.reusePort == true {
            sharesPort = true
        } else {
            sharesPort = false
        }
        var rules = ListenerRules()
        if let configuration {
            rules.isSecure = configuration.tls != nil
            rules.offersHTTP2 = configuration.offersHTTP2
            rules.expectsProxyHeader = configuration.acceptsProxyProtocol
            rules.isTrusted = configuration.isTrusted
            rules.redirectPort = configuration.redirectsToHTTPSPort ?? 0
            rules.strictTransportSeconds = configuration.tls?.strictTransport?.wholeSeconds ?? 0
        }
        self.rules = rules
    }

    private init(_ other: ListenerSocket, socketOf previous: ListenerSocket) {
        id = other.id
        fd = previous.fd
        isShared = other.isShared
        // A changed `reuse_port` is for sockets that are opened later.
        sharesPort = previous.sharesPort
        role = other.role
        tls = other.tls
        rules = other.rules
    }

    /// The same listener with the socket that the loop already has.
    func keeping(_ previous: ListenerSocket) -> ListenerSocket { ListenerSocket(self, socketOf: previous) }
}
