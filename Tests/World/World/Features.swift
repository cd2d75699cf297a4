import WorldMachine

/// What a configuration may have beyond what every world has; each is in some of the worlds, so that the average world takes
/// no longer for it.
enum Feature: CaseIterable {
    /// Routes that match, rewrite, redirect and respond in every way.
    case routes
    /// Rate limits by all keys.
    case limits
    /// Chosen fields of access lines.
    case lines
    case tracing
    /// Trusted proxies, with their protocols and their checks.
    case proxies
    /// Programs: API keys, signed requests, a service of one's own.
    case programs
    /// Upstreams with health checks, outliers, breakers and ways to balance.
    case traffic
    case copies
    /// Paths that are kept or merged, and small limits of heads and streams.
    case paths
    case assertion
    /// A store whose values are sealed.
    case seal
    /// WebSockets over HTTP/2, gRPC, and tunnels of a certain age.
    case streams
    case overload
    /// Users who register, and look after their accounts.
    case members
    /// An issuer of OpenID Connect.
    case company
    /// The gateway's own endpoints, and what else may be sent to them.
    case endpoints
    /// Sessions that are bound to a key.
    case bound
    /// Events for receivers, and an audit log.
    case records
    /// An operator, and what the configuration says of certain callers.
    case operators
    /// Refresh tokens of Apple's that are checked.
    case grants

    /// In how many worlds of a thousand it is.
    fileprivate var frequency: Int {
        switch self {
        case .members: 300
        case .routes, .proxies, .programs, .traffic, .company, .records: 140
        case .grants: 250
        case .lines, .seal, .overload: 80
        default: 100
        }
    }

    /// Whether there are requests that try it.
    fileprivate var hasRequests: Bool {
        switch self {
        case .lines, .tracing, .seal, .overload, .assertion, .records, .grants: false
        default: true
        }
    }
}

/// The features that a seed decides on: it draws from a generator of its own.
struct Features {
    private var chosen: Set<Feature> = []
    /// How many things are tried.
    private(set) var requests = 0
    private let variety: UInt64

    init(seed: UInt64) {
        var random = SeededRandom(seed: seed, part: "features")
        for feature in Feature.allCases where random.chance(feature.frequency) {
            chosen.insert(feature)
            if feature.hasRequests { requests += feature == .members ? 12 : random.within(4...8) }
        }
        requests = min(requests, 20)
        variety = random.next()
    }

    /// - Parameter callers: who else there is: some features are about their accounts.
    func has(_ feature: Feature, _ callers: Callers) -> Bool {
        switch feature {
        case .members: chosen.contains(feature) && callers.hasAccounts
        case .grants: chosen.contains(feature) && callers.hasAccounts && callers.hasApple
        default: chosen.contains(feature)
        }
    }

    /// One of several ways to configure something.
    /// - Parameter index: of the choice: others are independent of it.
    func pick<Choice>(_ index: Int, _ choices: [Choice]) -> Choice {
        var random = SeededRandom(seed: variety &+ UInt64(index))
        return random.pick(choices)
    }
}

extension Plan {
    func has(_ feature: Feature) -> Bool { features.has(feature, callers) }

    /// Whether a client is the one that tries them.
    func isExplorer(_ client: Int) -> Bool { features.requests > 0 && client == clients.count - 1 }

    /// What goes wrong with them.
    func featureFaults() -> [PlannedFault] {
        guard [.tracing, .programs, .copies, .traffic, .company, .records].contains(where: has) else { return [] }
        var random = SeededRandom(seed: seed, part: "features' faults")
        return (0..<random.below(3)).map { _ in
            let at = 2_000_000_000 + Int64(random.below(Int((calm - 8_000_000_000) / 1_000_000))) * 1_000_000
            let kind: ServiceFault = random.pick([.dies, .hangs, .fails, .crawls, .forgets])
            return PlannedFault(.offersFail(kind), at: at, duration: Int64(random.within(50...6000)) * 1_000_000)
        }
    }

    func listeners(of gateway: Int) -> String {
        guard has(.proxies) else { return "" }
        return """
            , {address: "10.0.0.\(gateway):8081", proxy_protocol: true}, \
            {address: "10.0.0.\(gateway):8082", redirect_to_https: 8443}
            """
    }

    /// Of `server.limits`.
    var limitKeys: String {
        has(.paths) ? ", header_bytes: \(headBytes)B, header_fields: \(headFields)" : ""
    }

    /// Keys of `server`.
    var serverKeys: String {
        var lines: [String] = []
        if has(.proxies) {
            lines.append("trusted_proxies: [\"10.0.0.236/30\"]")
            lines.append("health: {path: /healthz}")
        }
        if has(.paths) {
            let (slash, percent) = (features.pick(1, ["keep", "reject"]), features.pick(2, ["keep", "reject"]))
            lines.append(
                "paths: {encoded_slash: \(slash), encoded_percent: \(percent), repeated_slash: \(mergesSlashes ? "merge" : "reject")}"
            )
            lines.append(
                "http2: {max_concurrent_streams: 4, max_resets_per_10s: \(features.pick(3, [3, 20])), initial_window: 8KiB}"
            )
        }
        if has(.overload) { lines.append("overload: {loop_delay: \(features.pick(4, [1, 3, 20]))ms}") }
        return lines.map { "  " + $0 }.joined(separator: "\n")
    }

    var mergesSlashes: Bool { features.pick(0, [true, false]) }
    var headBytes: Int { has(.paths) ? 4096 : 16_384 }
    var headFields: Int { has(.paths) ? 40 : 100 }

    /// Keys of `store`.
    var storeKeys: String {
        guard has(.seal) else { return "" }
        let replicas = store == .replicated || store == .cluster ? ", replicas: keys" : ""
        let onError = features.pick(5, ["cached", "deny"])
        return
            ", seal: {key_file: store.key}, wait_replicas: \(features.pick(6, [0, 1, 2])), pool: 2, on_error: \(onError)\(replicas)"
    }

    /// Blocks of `providers`.
    var featureProviders: String {
        (has(.members) ? peopleBlock : "")
            + (has(.company)
                ? Company.block(
                    hasBrowsers: callers.hasBrowsers, mode: companyMode, pkce: features.pick(30, [true, false])) : "")
            + programBlocks
    }

    /// How browsers come back from the company's page.
    var companyMode: String { features.pick(31, ["query", "form_post"]) }

    private var peopleBlock: String {
        let verify = features.pick(32, ["email", "email", "none"])
        return """
              people:
                kind: password
                users: accounts
                basic: false
                hash: {memory: 8KiB, iterations: 1}
                register: {enabled: true, verify: \(verify), link: "https://app.example.com/verify?token={token}"}
                reset: {link: "https://app.example.com/reset?token={token}"}
                throttle: {attempts: 200}

            """
    }

    /// Keys of `sessions`.
    var sessionKeys: String {
        (has(.endpoints) ? ", cors: {origins: [\"https://pages.example\"]}, limits: {login: [logins]}" : "")
            + (has(.bound) ? ", dpop: optional" : "")
    }

    private var programBlocks: String {
        guard has(.programs) else { return "" }
        let certificates = has(.proxies) ? "  device: {kind: mtls, identity: san_uri}\n" : ""
        return """
              keys: {kind: api_key, keys_file: keys.jsonl}
              partner:
                kind: signed
                nonce: optional
                keys:
                  acme: {algorithm: hmac-sha256, secret: "\(Partner.secret)", subject: acme, claims: {tier: gold, level: 5, teams: [a, "b, c"], member: true, name: "Zoë"}}
                  beta: {algorithm: hmac-sha256, secret: "\(Partner.secret)", subject: beta, nonce: required, claims: {tier: silver, level: 2, teams: [d]}}
              robot:
                kind: http
                url: "http://127.0.0.1:9105/verify"
                accepts: [{bearer_prefix: "pt_"}, {header: X-Partner}]
                timeout: 1s
                signing_key: "\(Robots.signingKey)"
                cache: {max: 3s}
                cache_key: [path]
                circuit: {failures: 3, open: 2s}
                bulkhead: {concurrency: 2, queue: 8}
            \(certificates)
            """
    }

    /// Lines of `rate_limits`.
    var featureLimits: String {
        // Wide enough for those who log in, and not for those who try.
        let logins = has(.endpoints) ? "  logins: {key: address, rate: 20/s, burst: 30}\n" : ""
        guard has(.limits) else { return logins }
        let shared = store == .memory ? "" : features.pick(7, ["", ", shared: true, on_store_error: deny"])
        return """
              named: {key: "header:X-Tenant", rate: 2/s, burst: 5\(shared)}
              hosts: {key: [address, host], rate: 30/s, burst: 40}
              own: {key: [subject, route], rate: 3/s, burst: 6}
            \(logins)
            """
    }

    /// Blocks of the configuration.
    var featureBlocks: String {
        var text = ""
        if has(.lines) {
            text += """
                log:
                  subject: \(features.pick(8, ["hash", "off", "full"]))
                  subject_key: "0123456789abcdef0123"
                  level: \(features.pick(9, ["info", "info", "debug"]))
                  access: {fields: [timestamp, time_ms, event, level, instance_id, request_id, client, method, host, path, subject, session_id, route, status, reason, provider, upstream, check, bytes_in, bytes_out, duration_us, protocol, listener, tls_version, user_agent, referer, upstream_status, upstream_us, retries, member, condition, trace_id]}

                """
        }
        if has(.tracing) {
            text +=
                "tracing: {otlp: \"http://127.0.0.1:9104\", sample: \(features.pick(10, [5, 30]))%, parent: trusted}\n"
        }
        if has(.assertion) {
            text += "assertion: {issuer: \"https://gateway.example\", key_file: assertion.pem, ttl: 30s}\n"
        }
        if has(.endpoints) {
            text +=
                "well_known: {change_password: /account, apple_app_site_association: {webcredentials: [ABCDE12345.com.example.app]}}\n"
        }
        return text + hooks
    }

    /// Receivers of events.
    private var hooks: String {
        guard callers.hasAccounts, has(.members) || has(.records) else { return "" }
        var text = "webhooks:\n"
        func add(_ name: String, _ events: String) {
            text +=
                "- {name: \(name), url: \"http://127.0.0.1:9107/hook\", secret: \"\(Hook.secret)\", events: [\(events)], timeout: 2s}\n"
        }
        if has(.members) { add("mails", "mail.*") }
        if has(.records) { add("events", "\"*\", login.*") }
        return text
    }

    /// The audit log of a gateway.
    func audit(of gateway: Int) -> String {
        has(.records) ? "audit: {file: audit-\(gateway).log, key_file: audit.pem}\n" : ""
    }

    /// Files that they name.
    var featureFiles: [(name: String, text: String)] {
        var files: [(name: String, text: String)] = []
        if has(.seal) { files.append(("store.key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")) }
        if has(.assertion) { files.append(("assertion.pem", SigningKeys.developerPEM)) }
        if has(.records) { files.append(("audit.pem", SigningKeys.developerPEM)) }
        if has(.programs) { files.append(("keys.jsonl", ProgramKey.all.map(\.line).joined())) }
        return files
    }
}
