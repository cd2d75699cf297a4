internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis

/// `martlet check --online`: asks the store, the issuers and the upstreams whether they are there.
struct OnlineCheck {
    private let blueprint: Blueprint

    init(_ blueprint: Blueprint) { self.blueprint = blueprint }

    func run() async -> ExitCode {
        do throws(StartError) {
            let services = try Services(sink: LogSink.standardError(), level: .error)
            defer { services.shutdown() }
            let graph = try Graph.build(
                blueprint, services, previous: nil, keys: KeyShelf(), forgetting: ForgetSwitch())
            var isWell = await checkStore(graph)
            for provider in graph.providers { isWell = await check(provider) && isWell }
            for endpoint in Set(graph.snapshot.upstreams.flatMap(\.endpoints)) {
                isWell = await check(endpoint, services) && isWell
            }
            graph.store.shutdown()
            return isWell ? .ok : .unavailable
        } catch {
            Output.error("\(error)\n")
            return error.exit
        }
    }

    private func say(_ what: String, _ problem: String?) -> Bool {
        Output.line("\(what): \(problem ?? "ok")")
        return problem == nil
    }

    private func checkStore(_ graph: Graph) async -> Bool {
        guard let redis = graph.store.redis else { return say("store memory:", nil) }
        do throws(StoreError) {
            try await redis.settle()
            return say("store", nil)
        } catch {
            return say("store", error.description)
        }
    }

    private func check(_ provider: ProviderHandle) async -> Bool {
        guard let reporting = provider.reporting else { return say("provider \(provider.name)", nil) }
        await provider.running?.start()
        let health = reporting.health
        await provider.running?.shutdown()
        return say("provider \(provider.name)", health.state == .ready ? nil : health.detail)
    }

    private func check(_ endpoint: EndpointAddress, _ services: Services) async -> Bool {
        let what = "upstream \(EndpointText.url(endpoint))"
        let places: [SocketEndpoint]
        switch endpoint {
        case .echo: return say(what, nil)
        case .unix(let path): places = SocketEndpoint(path: path).map { [$0] } ?? []
        case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
            do {
                places = try await services.resolver.resolve(host: host, port: port)
            } catch {
                return say(what, "\(error)")
            }
        }
        for place in places where await Probe.connects(to: place) { return say(what, nil) }
        return say(what, "does not accept connections")
    }
}
