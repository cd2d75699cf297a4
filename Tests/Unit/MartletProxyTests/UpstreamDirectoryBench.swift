import MartletDecisionsTesting
import MartletIO
import MartletResponder
import MartletRouter
import MartletTLS
import MartletTraffic

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletProxy

/// A directory of endpoints, by their plain indices.
final class UpstreamDirectoryBench {
    static let second: Int64 = 1_000_000_000
    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

    var directory = UpstreamDirectory()

    init(_ upstreams: Upstream...) { adopt(upstreams) }

    /// One upstream with this many endpoints.
    convenience init(endpoints count: Int, balance: UpstreamConfiguration.Balance = .roundRobin) {
        let addresses = (0..<count).map { SampleUpstream.address($0) }
        self.init(UpstreamDirectoryBench.upstream("api", addresses, balance: balance))
    }

    // MARK: Configuration

    static func upstream(
        _ name: String, _ endpoints: [EndpointAddress], balance: UpstreamConfiguration.Balance = .roundRobin,
        host: UpstreamConfiguration.HostPolicy = .keep, timeouts: UpstreamTimeouts = UpstreamTimeouts(),
        transport: UpstreamTransport = UpstreamTransport(), tls: TLSClientContext? = nil
    ) -> Upstream {
        var configuration = SampleUpstream.configuration(name, endpoints)
        (configuration.balance, configuration.host, configuration.timeouts) = (balance, host, timeouts)
        configuration.transport = transport
        return Upstream(configuration, tls: tls)
    }

    /// The addresses of a host name, from literals.
    static func resolved(
        _ endpoint: EndpointAddress, in upstream: String = "a", _ literals: String...
    ) -> ResolvedName {
        ResolvedName(
            upstream: upstream, endpoint: endpoint,
            addresses: literals.compactMap { SocketEndpoint(literal: $0, port: 80) })
    }

    private static func snapshot(_ upstreams: [Upstream]) -> Snapshot {
        var diagnostics = Diagnostics()
        let table = RouteTable.compile(
            [], mounts: [], upstreams: upstreams.map(\.name), providers: [], paths: PathOptions(), limits: Limits(),
            into: &diagnostics)
        guard let table else { fatalError(diagnostics.description) }
        let server = ServerConfiguration(
            listeners: [], trustedProxies: [], limits: Limits(), paths: PathOptions(), timeouts: ServerTimeouts())
        return Snapshot(
            routes: table, upstreams: upstreams, providers: [], server: server,
            signIn: SignInComponents(sessions: nil, subjects: nil, assertion: nil, handler: EchoHandler.respond))
    }

    /// Adopts a configuration.
    /// - Returns: the endpoints that it retires.
    @discardableResult
    func adopt(_ upstreams: [Upstream], resolved: [ResolvedName] = [], now: Int64 = 0) -> [Int] {
        directory.adopt(UpstreamDirectoryBench.snapshot(upstreams), resolved: resolved, now: now).map {
            Int($0.rawValue)
        }
    }

    /// - Returns: the endpoints that it retires.
    @discardableResult
    func resolve(_ names: ResolvedName..., now: Int64 = 0) -> [Int] {
        directory.resolve(names, now: now).map { Int($0.rawValue) }
    }

    // MARK: Requests

    /// The endpoint for a request.
    func choose(_ cluster: Int = 0, hash: UInt64 = 0, avoiding: Int = -1, now: Int64 = 0) -> Int? {
        let chosen = directory.choose(
            ClusterIndex(rawValue: Int32(cluster)), hash: hash, avoiding: EndpointIndex(rawValue: Int32(avoiding)),
            now: now)
        return chosen.map { Int($0.rawValue) }
    }

    /// A hash that belongs to an endpoint while all of its upstream are usable and have the same weight.
    func key(of endpoint: Int) -> UInt64 {
        let members = self.members(Int(directory.endpoints[endpoint].cluster))
        return (1...UInt64.max).first { key in
            members.max { left, right in
                RendezvousHash.score(key, directory.endpoints[left].hash)
                    < RendezvousHash.score(key, directory.endpoints[right].hash)
            } == endpoint
        } ?? 0
    }

    /// The endpoints for several requests, one after the other; −1 for none.
    func choices(_ count: Int, hash: UInt64 = 0, avoiding: Int = -1, now: Int64 = 0) -> [Int] {
        (0..<count).map { _ in choose(hash: hash, avoiding: avoiding, now: now) ?? -1 }
    }

    func begin(_ endpoint: Int) { directory.began(EndpointIndex(rawValue: Int32(endpoint))) }

    func end(_ endpoint: Int) { directory.ended(EndpointIndex(rawValue: Int32(endpoint))) }

    func succeed(_ endpoint: Int, at now: Int64 = 0) {
        directory.succeeded(EndpointIndex(rawValue: Int32(endpoint)), now: now)
    }

    func fail(_ endpoint: Int, refused: Bool = false, at now: Int64 = 0) {
        directory.failed(EndpointIndex(rawValue: Int32(endpoint)), refused: refused, now: now)
    }

    /// The next addresses to connect to; "none" where there is none.
    func nextAddresses(of endpoint: Int, _ count: Int) -> [String] {
        (0..<count).map { _ in
            directory.nextAddress(of: EndpointIndex(rawValue: Int32(endpoint)))?.description ?? "none"
        }
    }

    func setIdle(_ endpoint: Int, count: Int) {
        let handle = Handle<UpstreamConnection>(index: 0, generation: 1)
        directory.endpoints[endpoint].idle = [Handle<UpstreamConnection>](repeating: handle, count: count)
    }

    /// Makes connections idle, the last one last.
    func setIdle(_ endpoint: Int, handles indices: [Int32]) {
        directory.endpoints[endpoint].idle = indices.map { Handle(index: $0, generation: 1) }
    }

    /// The index of the idle connection that is taken, or −1.
    func takeIdle(_ endpoint: Int) -> Int {
        directory.takeIdle(EndpointIndex(rawValue: Int32(endpoint))).map { Int($0.index) } ?? -1
    }

    func keepsIdle(_ endpoint: Int) -> Bool { directory.keepsIdle(EndpointIndex(rawValue: Int32(endpoint))) }

    func overdue(_ now: Int64) -> [Int] { directory.takeOverdue(now).map { Int($0) }.sorted() }

    // MARK: State

    func endpoint(_ index: Int) -> UpstreamDirectory.Endpoint { directory.endpoints[index] }

    var endpointCount: Int { directory.endpoints.count }

    /// The indices of the current configuration's upstreams.
    var clusters: [Int] { directory.clusterOfUpstream.map { Int($0.rawValue) } }

    func members(_ cluster: Int) -> [Int] { directory.clusters[cluster].members.map { Int($0.rawValue) } }

    /// One line for each endpoint of each upstream.
    func report(now: Int64 = 0) -> [String] {
        directory.report(now: now).map { row in
            let load = "\(row.idle) idle, \(row.active) active, \(row.failures) failed"
            return "\(row.upstream) \(row.endpoint): \(load)\(row.isEjected ? ", ejected" : "")"
        }
    }
}
