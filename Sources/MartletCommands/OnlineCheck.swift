private import CLinux
internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletProvider
internal import MartletRedis
internal import MartletServer

/// The result of checking one dependency of the gateway.
struct OnlineFinding: Sendable, CustomStringConvertible {
    /// The dependency: `store`, `accounts`, `provider apple`, `upstream http://127.0.0.1:9000`.
    let subject: String
    /// `nil` if the check passed.
    var failure: ErrorCode?
    var detail: String
    var isWarning = false

    var isHealthy: Bool { failure == nil }

    var description: String {
        if isWarning { return "\(subject): warning: \(detail)" }
        guard let failure else { return detail.isEmpty ? "\(subject): ok" : "\(subject): ok, \(detail)" }
        return "\(subject): \(detail) [\(failure)]"
    }
}

/// `martlet check --online`: checks the stores, the issuers, the providers' services and the upstreams.
///
/// Shared data is not changed, except for temporary keys in the shared store.
struct OnlineCheck {
    private static let providerTimeout = Duration.seconds(15)

    let blueprint: Blueprint

    /// - Parameter report: called with every finding as it is made.
    func run(_ report: (OnlineFinding) -> Void) async -> [OnlineFinding] {
        var findings: [OnlineFinding] = []
        func note(_ finding: OnlineFinding) {
            findings.append(finding)
            report(finding)
        }
        do throws(StartError) {
            let services = try Services.ofCommand()
            defer { services.shutdown() }
            let graph = try Graph.ofCommand(blueprint, services, access: .readOnly)
            for finding in await checkStore(graph, services) { note(finding) }
            if let finding = await checkAccounts(graph) { note(finding) }
            for provider in graph.providers {
                for finding in await check(provider) { note(finding) }
            }
            for endpoint in Set(graph.snapshot.upstreams.flatMap(\.endpoints)) {
                note(await check(endpoint, services))
            }
            graph.store.shutdown()
        } catch {
            note(OnlineFinding(subject: "gateway", failure: error.code, detail: error.message))
        }
        return findings
    }

    private func checkStore(_ graph: Graph, _ services: Services) async -> [OnlineFinding] {
        guard let redis = graph.store.redis else {
            return [OnlineFinding(subject: "store", failure: nil, detail: "in memory")]
        }
        do throws(StoreError) {
            try await redis.waitUntilConnected()
        } catch {
            var servers = ""
            if case .redis(let url) = graph.blueprint.store {
                servers = url.seeds.map(\.description).joined(separator: ", ") + ": "
            }
            return [OnlineFinding(subject: "store", failure: error.code, detail: servers + error.message)]
        }
        let hasSharedLimits = graph.blueprint.configuration.server.rateLimits.contains(where: \.isShared)
        let permissions = RedisPermissions(
            client: redis, prefix: graph.store.label.prefix, clock: services.clock, hasSharedLimits: hasSharedLimits)
        var findings = await permissions.check()
        if findings.allSatisfy(\.isHealthy) {
            var username: String?
            if case .redis(let url) = graph.blueprint.store { username = url.credentials?.user }
            let limit = graph.blueprint.configuration.store.timeouts.sharedLimit
            findings += await StoreAdvice(client: redis, username: username)
                .findings(sharedLimit: hasSharedLimits ? limit : nil)
        }
        // The rights were tried at one of several masters.
        let lost = redis.status.lostMasters.map { address, error in
            OnlineFinding(
                subject: "store", failure: error.code, detail: "master \(address) is unavailable: \(error.message)")
        }
        guard !lost.isEmpty else { return findings }
        return findings.filter { $0.failure != nil } + lost.sorted { $0.detail < $1.detail }
    }

    private func checkAccounts(_ graph: Graph) async -> OnlineFinding? {
        guard let accounts = graph.accounts else { return nil }
        var finding = OnlineFinding(subject: "accounts", failure: nil, detail: "")
        do throws(AccountError) {
            try await accounts.store.start()
        } catch  where [.accountsSchemaMissing, .accountsSchemaOutdated].contains(error.code) {
            finding.detail = error.message
        } catch {
            (finding.failure, finding.detail) = (error.code, error.message)
        }
        await accounts.store.shutdown()
        if finding.isHealthy, let reason = writeFailure(accounts.url) {
            (finding.failure, finding.detail) = (.accountsReadOnly, reason)
        }
        return finding
    }

    /// Why an SQLite file, or its folder, is not writable; `nil` if it is.
    private func writeFailure(_ url: String) -> String? {
        guard url.hasPrefix("sqlite:") else { return nil }
        let path = String(url.dropFirst("sqlite:".count))
        let folder = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? "."
        // SQLite creates the write-ahead log in the same folder.
        guard unsafe access(folder, W_OK | X_OK) == 0 else {
            return "folder '\(folder)' does not exist or is not writable"
        }
        let isThere = unsafe access(path, F_OK) == 0
        return unsafe isThere && access(path, W_OK) != 0 ? "SQLite file '\(path)' is not writable" : nil
    }

    private func check(_ provider: ProviderHandle) async -> [OnlineFinding] {
        let subject = "provider \(provider.name)"
        if let checking = provider.onlineChecking {
            let results = await checking.checkOnline(until: Clock.system.monotonicTime + Self.providerTimeout)
            return results.map {
                OnlineFinding(subject: "\(subject) \($0.check)", failure: $0.failure, detail: $0.detail)
            }
        }
        guard let reporting = provider.reporting else {
            return [OnlineFinding(subject: subject, failure: nil, detail: "no external dependencies")]
        }
        await provider.running?.start()
        let health = reporting.health
        await provider.running?.shutdown()
        let failure: ErrorCode? =
            switch health.state {
            case .ready: nil
            case .degraded: "provider.degraded"
            case .unavailable: "provider.unavailable"
            }
        return [OnlineFinding(subject: subject, failure: failure, detail: health.detail)]
    }

    private func check(_ endpoint: EndpointAddress, _ services: Services) async -> OnlineFinding {
        let subject = "upstream \(EndpointText.url(endpoint))"
        let addresses: [SocketEndpoint]
        switch endpoint {
        case .echo: return OnlineFinding(subject: subject, failure: nil, detail: "built in")
        case .unix(let path): addresses = SocketEndpoint(path: path).map { [$0] } ?? []
        case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
            do {
                addresses = try await services.resolver.resolve(host: host, port: port)
            } catch {
                return OnlineFinding(subject: subject, failure: "upstream.name_unknown", detail: "\(error)")
            }
        }
        for address in addresses where await Probe.connects(to: address) {
            return OnlineFinding(subject: subject, failure: nil, detail: "accepts connections")
        }
        return OnlineFinding(
            subject: subject, failure: "upstream.connect_failed", detail: "does not accept connections")
    }
}
