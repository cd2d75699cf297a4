/// One entry of `upstreams:`.
@frozen package struct UpstreamConfiguration: KeyedBlock {
    /// The load-balancing policy.
    @frozen package enum Balance: Sendable, Equatable {
        case leastRequests
        case roundRobin
        /// By a hash of this request header (lower case).
        case hash(header: String)
        /// By a hash of the caller's subject.
        case hashSubject
        /// By a hash of the client's address.
        case hashAddress
    }

    /// The `Host` sent to the upstream.
    @frozen package enum HostPolicy: Sendable, Equatable {
        case keep
        case endpoint
        case fixed(String)
    }

    package var name = Located<String>.unread
    /// In file order; at least one.
    package var members: [EndpointConfiguration] = []
    package var timeouts = UpstreamTimeouts()
    package var host = HostPolicy.keep
    package var balance = Balance.leastRequests
    package var transport = UpstreamTransport()
    package var policies = UpstreamPolicies()

    /// The addresses of its endpoints.
    package var endpoints: [Located<EndpointAddress>] { members.map(\.address) }

    static let keys: [ConfigurationKey<Self>] =
        [
            .required(
                "endpoints", \.members, as: NonEmpty<EndpointConfiguration>.self,
                "`http://host[:port]`, `https://…`, `h2c://…`, `unix:/path` or `builtin:echo`, which echoes the request; or `{ url: http://host, weight: 2, backup: true }`."
            ),
            .block("timeouts", \.timeouts, "Timeouts of the upstream side."),
            .key("host", \.host, "The `Host` sent to the upstream: `keep` (the client's), `endpoint`, or a name."),
            .key(
                "balance", \.balance,
                "Load balancing; `hash:<header>`, `hash:subject` and `hash:address` send equal values to the same endpoint."
            ),
        ] + UpstreamTransport.keys + UpstreamPolicies.keys + [
            .check(always: true) { upstream, reader in
                upstream.transport.check(upstream.endpoints, &reader)
                upstream.policies.checkProbes(of: upstream.members, upstream.transport, &reader)
            },
            .check { $0.check(&$1) },
        ]

    /// An endpoint that is there twice gets twice its share of requests and of probes; only backups are none.
    private func check(_ reader: inout ConfigurationReader) {
        guard let first = members.first else { return }
        if members.allSatisfy({ $0.weight == 0 }) {
            reader.error(
                .configBadValue, at: first.address.location,
                "endpoints: at least one needs a weight above 0, or none gets requests")
        }
        var known: Set<EndpointAddress> = []
        for address in members.map(\.address) where !known.insert(address.value).inserted {
            reader.error(
                .configDuplicateName, at: address.location,
                "endpoints: the same endpoint is there twice; 'weight' gives it a larger share")
        }
        if members.allSatisfy(\.isBackup) {
            reader.diagnostics.warning(
                .configBadValue, at: first.address.location,
                "endpoints: all are backups, so that each request is one in an outage; one should be none")
        }
    }
}

extension UpstreamConfiguration.HostPolicy: ConfigurationValue, Spelling {
    static func text(of content: Self) -> String? { content == .keep ? "keep" : nil }

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

extension UpstreamConfiguration.Balance: ConfigurationValue, Spelling {
    static let shape = ConfigurationGrammar.Shape.either([
        .pattern("^(least_requests|round_robin|hash:.+)$"), .block(of: UpstreamConfiguration.HeaderHash.self),
    ])
    static func text(of content: Self) -> String? { content == .leastRequests ? "least_requests" : nil }

    /// `least_requests`, `round_robin`, `hash:subject`, `hash:address` or `hash:<header>`; or `{ hash: header, name: … }`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard node.entries == nil else {
            self = .hash(header: try node.block(UpstreamConfiguration.HeaderHash.self, title: "balance").name)
            return
        }
        let text = try node.text()
        switch text {
        case "least_requests": self = .leastRequests
        case "round_robin": self = .roundRobin
        case "hash:subject": self = .hashSubject
        case "hash:address": self = .hashAddress
        default:
            guard text.hasPrefix("hash:") else {
                let names = ["least_requests", "round_robin", "hash:subject", "hash:address"]
                let hint = Suggestion.phrase(for: text, among: names)
                throw node.error(
                    .configBadValue,
                    "must be least_requests, round_robin, hash:subject, hash:address or hash:<header>, "
                        + "not \(quoted(text))\(hint)")
            }
            let name = text.dropFirst(5)
            guard !name.isEmpty, name.utf8.allSatisfy(HeaderName.isTokenByte) else {
                throw node.error(.configBadHeader, "\(quoted(String(name))) is not a header name")
            }
            self = .hash(header: name.lowercased())
        }
    }
}

extension UpstreamConfiguration {
    /// `{ hash: header, name: X-Key }`: also for headers that are called `subject` or `address`.
    struct HeaderHash: ConfigurationDecodable {
        /// In lower case.
        let name: String

        static var grammar: ConfigurationGrammar? {
            .init([
                .required("hash", .constant("header"), "By a request header."),
                .required("name", .text, "The name of the header."),
            ])
        }

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            let what = reader.expected("hash", as: Located<String>.self)
            let name = try reader.required("name", as: Located<String>.self)
            if let what, what.value != "header" {
                reader.error(.configBadValue, at: what.location, "hash: must be header, not \(quoted(what.value))")
            }
            guard !name.value.isEmpty, name.value.utf8.allSatisfy(HeaderName.isTokenByte) else {
                throw ConfigurationError(
                    .configBadHeader, at: name.location, "\(quoted(name.value)) is not a header name")
            }
            self.name = name.value.lowercased()
        }
    }
}

/// `upstreams.*.timeouts`.
@frozen package struct UpstreamTimeouts: KeyedBlock, Equatable {
    package var connect = Duration.seconds(2)
    package var responseHead = Duration.seconds(30)
    package var idle = Duration.seconds(60)

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key("connect", \.connect, in: Duration.positive, "For connecting to an endpoint."),
        .key(
            "response_head", \.responseHead, in: Duration.positive,
            "From the end of the request to the response head."),
        .key("idle", \.idle, in: Duration.positive, "The longest pause in bodies and tunnels, in either direction."),
    ]
}

/// One element of `endpoints:`.
@frozen package struct EndpointConfiguration: KeyedBlock, Hashable {
    package static let maximumWeight = 1000

    package var address: Located<EndpointAddress>
    package var weight = 1
    package var isBackup = false

    package init(_ address: Located<EndpointAddress>) { self.address = address }

    init() { self.init(Located(.echo, at: .none)) }

    static let keys: [ConfigurationKey<Self>] = [
        .required("url", \.address, endsBlock: true, "As an endpoint that is only a URL."),
        .key(
            "weight", \.weight, in: 0...maximumWeight,
            "Its share of the requests, in relation to the others; `0` gets none and is still probed."),
        .key("backup", \.isBackup, "Whether it is used only while no other is usable."),
    ]
}

extension EndpointConfiguration: ConfigurationValue, Spelling {
    static let shape = ConfigurationGrammar.Shape.either([.text, .block(of: Self.self)])

    /// A URL, or a block of `url`, `weight` and `backup`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard node.entries != nil else {
            self.init(try Located<EndpointAddress>(decoding: node))
            return
        }
        self = try node.block(Self.self, title: "an endpoint")
    }
}
