private import CLinux
internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis

/// What came of asking one thing that the gateway depends on.
struct OnlineFinding: Sendable, CustomStringConvertible {
    /// What was asked: `store`, `accounts`, `provider apple`, `upstream http://127.0.0.1:9000`.
    let subject: String
    /// `nil` where it is as the gateway needs it.
    var failure: ErrorCode?
    /// What was found, in one line, without a secret.
    var detail: String

    var isWell: Bool { failure == nil }

    var description: String {
        guard let failure else { return detail.isEmpty ? "\(subject): ok" : "\(subject): ok, \(detail)" }
        return "\(subject): \(detail) [\(failure)]"
    }
}

/// `martlet check --online`: asks the stores, the issuers, the providers' services and the upstreams.
///
/// Nothing that others see is changed, but for a key in the shared store that is removed again.
struct OnlineCheck {
    /// How long a provider may take to ask its services.
    private static let providerTimeout = Duration.seconds(15)

    private let blueprint: Blueprint

    init(_ blueprint: Blueprint) { self.blueprint = blueprint }

    /// - Parameter report: is told each finding as it comes.
    func run(_ report: (OnlineFinding) -> Void) async -> [OnlineFinding] {
        var findings: [OnlineFinding] = []
        func note(_ finding: OnlineFinding) {
            findings.append(finding)
            report(finding)
        }
        do throws(StartError) {
            let services = try Services(sink: LogSink.standardError(), level: .error)
            defer { services.shutdown() }
            let graph = try Graph.build(
                blueprint, services, previous: nil, keys: KeyShelf(),
                forgetting: ForgetSwitch(logger: services.logger), access: .readOnly)
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
        guard let redis = graph.store.redis, case .redis(let url) = blueprint.store else {
            return [OnlineFinding(subject: "store", failure: nil, detail: "memory: is in the process")]
        }
        do throws(StoreError) {
            try await redis.settle()
        } catch {
            return [OnlineFinding(subject: "store", failure: error.code, detail: error.message)]
        }
        return await RedisRights(redis, url, keyPrefix: graph.store.label.prefix, services).check()
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
        if finding.isWell, let refusal = refusalToWrite(accounts.url) {
            (finding.failure, finding.detail) = (.accountsReadOnly, refusal)
        }
        return finding
    }

    /// Why an SQLite file, or the folder that it is to be made in, takes no writes; `nil` where it does.
    private func refusalToWrite(_ url: String) -> String? {
        guard url.hasPrefix("sqlite:") else { return nil }
        let path = String(url.dropFirst("sqlite:".count))
        let folder = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? "."
        // The write-ahead log stands beside the file.
        guard unsafe access(folder, W_OK | X_OK) == 0 else {
            return "its folder '\(folder)' is not there, or may not be written to"
        }
        let isThere = unsafe access(path, F_OK) == 0
        return unsafe isThere && access(path, W_OK) != 0 ? "the SQLite file '\(path)' may not be written to" : nil
    }

    private func check(_ provider: ProviderHandle) async -> [OnlineFinding] {
        let subject = "provider \(provider.name)"
        if let checking = provider.onlineChecking {
            let verdicts = await checking.checkOnline(until: Clock.system.monotonicTime + Self.providerTimeout)
            return verdicts.map {
                OnlineFinding(subject: "\(subject) \($0.check)", failure: $0.failure, detail: $0.detail)
            }
        }
        guard let reporting = provider.reporting else {
            return [OnlineFinding(subject: subject, failure: nil, detail: "it depends on nothing outside")]
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
        let places: [SocketEndpoint]
        switch endpoint {
        case .echo: return OnlineFinding(subject: subject, failure: nil, detail: "it is in the process")
        case .unix(let path): places = SocketEndpoint(path: path).map { [$0] } ?? []
        case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
            do {
                places = try await services.resolver.resolve(host: host, port: port)
            } catch {
                return OnlineFinding(subject: subject, failure: "upstream.name_unknown", detail: "\(error)")
            }
        }
        for place in places where await Probe.connects(to: place) {
            return OnlineFinding(subject: subject, failure: nil, detail: "it accepts connections")
        }
        return OnlineFinding(
            subject: subject, failure: "upstream.connect_failed", detail: "it does not accept connections")
    }
}
