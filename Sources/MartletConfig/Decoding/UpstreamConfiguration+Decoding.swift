extension UpstreamConfiguration {
    /// The keys of one entry of `upstreams:`; its name is the entry's key.
    struct Block: ConfigurationDecodable {
        let endpoints: NonEmpty<Located<EndpointAddress>>
        let timeouts: UpstreamTimeouts
        let host: HostPolicy
        let balance: Balance
        let transport: UpstreamTransport

        static var grammar: ConfigurationGrammar? {
            let keys: [ConfigurationGrammar.Key] = [
                .required(
                    "endpoints", .list(.text, nonEmpty: true),
                    "`http://host[:port]`, `https://…`, `h2c://…`, `unix:/path` or `builtin:echo`, which echoes the request."
                ),
                .optional("timeouts", .block(of: UpstreamTimeouts.self), "Timeouts of the upstream side."),
                .optional(
                    "host", .text, default: "keep",
                    "The `Host` sent to the upstream: `keep` (the client's), `endpoint`, or a name."),
                .optional(
                    "balance", .pattern("^(least_requests|round_robin|hash:.+)$"), default: "least_requests",
                    "Load balancing; `hash:<header>` sends equal values to the same endpoint."),
            ]
            return .init(
                keys + UpstreamTransport.keys
                    + [
                        .optional("health_check", .unsupported, "Not supported yet."),
                        .optional("outlier", .unsupported, "Not supported yet."),
                        .optional("retries", .unsupported, "Not supported yet."),
                    ])
        }

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            for key in ["health_check", "outlier", "retries"] { reader.unsupported(key) }
            timeouts = reader.block("timeouts") ?? UpstreamTimeouts()
            host = reader.optional("host", default: .keep)
            balance = reader.optional("balance", default: .leastRequests)
            let endpoints = reader.expected("endpoints", as: NonEmpty<Located<EndpointAddress>>.self)
            transport = UpstreamTransport(from: &reader, endpoints: endpoints?.elements ?? [])
            guard let endpoints else { throw .alreadyReported }
            self.endpoints = endpoints
        }
    }
}

extension UpstreamConfiguration.HostPolicy: ConfigurationValue {
    /// `keep`, `endpoint`, or a host with or without a port.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        switch try node.text() {
        case "keep": self = .keep
        case "endpoint": self = .endpoint
        case let name:
            guard HostAndPort.parse(Array(name.utf8)) != nil else {
                throw node.error(.configBadValue, "must be keep, endpoint or a host name, not \(quoted(name))")
            }
            self = .fixed(name.lowercased())
        }
    }
}

extension UpstreamConfiguration.Balance: ConfigurationValue {
    /// `least_requests`, `round_robin` or `hash:<header>`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        switch text {
        case "least_requests": self = .leastRequests
        case "round_robin": self = .roundRobin
        default:
            guard text.hasPrefix("hash:") else {
                let names = ["least_requests", "round_robin"]
                let hint = Suggestion.phrase(for: text, among: names)
                throw node.error(
                    .configBadValue, "must be least_requests, round_robin or hash:<header>, not \(quoted(text))\(hint)")
            }
            let name = text.dropFirst(5)
            guard !name.isEmpty, name.utf8.allSatisfy(HeaderName.isTokenByte) else {
                throw node.error(.configBadHeader, "\(quoted(String(name))) is not a header name")
            }
            self = .hash(header: name.lowercased())
        }
    }
}

extension UpstreamTimeouts: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("connect", .duration, default: "2s", "For connecting to an endpoint."),
            .optional("response_head", .duration, default: "30s", "From the end of the request to the response head."),
            .optional(
                "idle", .duration, default: "60s", "The longest pause in bodies and tunnels, in either direction."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        connect = reader.optional("connect", default: connect, in: Duration.positive)
        responseHead = reader.optional("response_head", default: responseHead, in: Duration.positive)
        idle = reader.optional("idle", default: idle, in: Duration.positive)
    }
}
