import WorldMachine

/// What a seed decides before anything happens. Parts of it can be left out, to find which of them a failure needs.
struct Plan {
    enum Store { case memory, redis, replicated, cluster }

    let seed: UInt64
    var gateways: Int
    var workers: Int
    var store: Store
    var users: Int
    var upstreams: Int
    /// Requests of each client.
    var clients: [Int]
    var faults: [PlannedFault] = []
    let callers: Callers
    let traffic: Traffic
    let features: Features
    /// How often peers misbehave at a step, in a thousand.
    var rudeness: Int
    var slowness: Int
    var failures: Int
    /// In nanoseconds.
    var cacheTime: Int64
    var graceTime: Int64
    var accessTime: Int64
    var weather = Weather()
    /// When all faults are over, in nanoseconds.
    var calm: Int64 = 40_000_000_000

    init(seed: UInt64) {
        var random = SeededRandom(seed: seed, part: "plan")
        self.seed = seed
        callers = Callers(seed: seed)
        traffic = Traffic(seed: seed)
        features = Features(seed: seed)
        store = random.pick([.memory, .redis, .redis, .redis, .replicated, .cluster])
        gateways = store == .memory ? 1 : random.pick([1, 2, 2, 2, 3])
        workers = random.pick([1, 1, 2])
        users = random.within(2...12)
        upstreams = random.within(1...3)
        let count = random.within(6...16)
        clients = (0..<count).map { _ in 140 / count + random.below(6) }
        rudeness = random.pick([0, 0, 5, 20, 60])
        slowness = random.pick([0, 10, 60])
        failures = random.pick([0, 20, 100])
        cacheTime = Int64(random.pick([0, 1, 5])) * 1_000_000_000
        graceTime = Int64(random.pick([2, 5, 30])) * 1_000_000_000
        accessTime = Int64(random.pick([300, 300, 300, 15])) * 1_000_000_000
        weather.short = random.pick([0, 30, 200])
        weather.late = random.pick([0, 5, 40])
        weather.reset = random.pick([0, 0, 1, 4])
        weather.capacity = random.pick([65_536, 65_536, 8192, 300_000])
        weather.delay = random.pick([10...60, 20...300, 200...20_000])
        let faultCount = random.within(20...24)
        for index in 0..<faultCount {
            faults.append(
                PlannedFault(index, calm: calm, gateways: gateways, upstreams: upstreams, store: store, &random))
        }
        faults += callers.faults(seed: seed, calm: calm, gateways: gateways)
        faults += traffic.faults(seed: seed, calm: calm, gateways: gateways)
        faults += featureFaults()
        if features.requests > 0 { clients.append(features.requests) }
    }

    /// Leaves one gateway, in which nothing goes wrong.
    mutating func shorten(until end: Int64) {
        (gateways, faults, calm) = (1, [], end)
        clients = clients.map { min($0, 8) }
        weather = Weather()
    }

    /// By how much clocks differ at most, in nanoseconds.
    var skew: Int64 {
        faults.reduce(0) { sum, fault in
            if case .clockJumps(_, let time) = fault.kind { return sum + abs(time) }
            return sum
        }
    }

    /// The configuration of a gateway.
    /// - Parameter variant: how often it has changed.
    func configuration(_ gateway: Int, store url: String, variant: Int) -> String {
        var text = """
            version: 1
            instance_id: gateway-\(gateway)
            server:
              listen: [{address: "10.0.0.\(gateway):8080"}\(listeners(of: gateway))]
              workers: \(workers)
              timeouts: {drain: 3s, idle: 8s\(traffic.bodyTimeout)}
              limits: {body_min_rate: \(traffic.bodyRate), rate_entries: 256\(limitKeys)}
            \(serverKeys)
            admin: {address: "10.0.0.\(gateway):9901", metrics: open, token_file: admin.token}
            store: {url: "\(url)"\(storeKeys)}
            \(callers.accounts)
            sessions: {access_ttl: \(callers.hasBrowsers ? "8s" : "\(accessTime / 1_000_000_000)s"), cache_ttl: \(cacheTime / 1_000_000_000)s, refresh_reuse_grace: \(graceTime / 1_000_000_000)s, max_per_subject: \(callers.sessionsPerSubject)\(sessionKeys)}
            providers:
              password: {kind: password, users: "htpasswd:users"}
            \(callers.providerBlocks(variant))
            \(featureProviders)
            upstreams:
            \(featureUpstreams)
              app:
                timeouts: {connect: 2s, response_head: 8s, idle: 8s}
            \(traffic.blocks)
                endpoints:

            """
        for index in 0..<upstreams { text += "    - \"\(endpoint(index))\"\n" }
        text += """
              plain:
                timeouts: {connect: 2s, response_head: 8s, idle: 8s}
                endpoints:

            """
        for index in 0..<upstreams { text += "    - \"http://10.0.0.\(100 + index)\"\n" }
        text += rateLimits + featureLimits
        text += """
            \(callers.blocks)
            \(featureBlocks)
            \(audit(of: gateway))
            routes:
            - {name: pub, match: {path: "/pub/**"}, upstream: app, auth: none}
            - name: opt
              match: {path: "/opt/**"}
              auth: {providers: [\(callers.providers)], mode: optional}
              headers: {set: {X-User-Id: {attribute: subject, default: ""}}}
              upstream: app
            - name: me
              match: {path: "/me/**"}
              auth: {providers: [\(callers.providers)]}
              headers: {set: {X-User-Id: {attribute: subject}}}
              upstream: app
            \(callers.routes)

            """
        return text + firstRoutes + longRoutes + limitedRoutes + featureRoutes
            + traffic.routes(callers.providers, variant)
    }

    /// The users' file.
    var usersFile: String {
        (0..<users).map {
            "u\($0):$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$y/R/iw0cHx0B5hboTp0GU5vuGaKiNjctPSKBd5+mUiM\n"
        }.joined()
    }
}

/// Something that goes wrong, and when.
struct PlannedFault {
    enum Kind: Equatable {
        case upstreamDies(Int)
        case upstreamHangs(Int)
        case upstreamUnreachable(Int)
        case clientsCut
        case reload(Int)
        case restart(Int)
        case kill(Int)
        case callFails(Int, Fault, Int32)
        case outputFails(Int)
        case storm
        case redisDies(Int)
        case redisHangs(Int)
        case redisUnreachable(Int)
        case redisCutFrom(Int)
        case redisCondition(Int, UInt8)
        case redisLags(Int)
        case redisFailsOver(Int, losing: Int)
        case redisLosesAll
        case clockJumps(Int, Int64)
        case issuerFails(ServiceFault)
        case weChatFails(ServiceFault)
        case keysRotate
        case diskFails(Int, Int32)
        case watchFails(Int, Int32)
        case offersFail(ServiceFault)
    }

    let kind: Kind
    let at: Int64
    let duration: Int64

    init(_ kind: Kind, at: Int64, duration: Int64) {
        self.kind = kind
        self.at = at
        self.duration = duration
    }

    init(_ index: Int, calm: Int64, gateways: Int, upstreams: Int, store: Plan.Store, _ random: inout SeededRandom) {
        duration = Int64(random.within(50...4000)) * 1_000_000
        at = 2_000_000_000 + Int64(random.below(Int((calm - 8_000_000_000) / 1_000_000))) * 1_000_000
        let gateway = random.below(gateways)
        let server = random.below(8)
        kind =
            switch random.below(store == .memory ? 14 : 26) {
            case 0, 1: .upstreamDies(random.below(upstreams))
            case 2: .upstreamHangs(random.below(upstreams))
            case 3: .upstreamUnreachable(random.below(upstreams))
            case 4: .clientsCut
            case 5, 6: .reload(gateway)
            case 7: .outputFails(gateway)
            case 8: .callFails(gateway, .accept, random.pick([24, 23, 12, 103, 105, 4]))
            case 9: .callFails(gateway, .socket, random.pick([24, 23, 12, 105]))
            case 10: .storm
            case 11: .restart(gateway)
            case 14, 15: .redisDies(server)
            case 16: .redisHangs(server)
            case 17: .redisUnreachable(server)
            case 18, 19: .redisCutFrom(gateway)
            case 20: .redisCondition(server, random.pick([1, 2, 4, 8, 16]))
            case 21: .redisLags(random.pick([1, 5, 50]))
            case 22, 23: .redisFailsOver(server, losing: random.pick([0, 0, 1, 5]))
            case 24: random.chance(100) ? .redisLosesAll : .redisDies(server)
            case 25: .kill(gateway)
            default: .upstreamDies(random.below(upstreams))
            }
    }
}
