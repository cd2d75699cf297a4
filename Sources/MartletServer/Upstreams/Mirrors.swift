internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletUpstreams

/// The copies of requests for other upstreams, for all event loops of the process.
final class Mirrors: Sendable {
    private let logger: Logger
    private let sender = MirrorSender()
    private let roster = Lock(MirrorRoster(), .mirrors)

    init(logger: Logger) { self.logger = logger }

    var receiver: any MirrorReceiving { sender }

    /// The counters of each upstream that gets copies, by name.
    var counts: [(upstream: String, counts: MirrorCounts)] {
        sender.counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Follows a configuration with the addresses of its host names.
    func follow(_ configuration: GatewayConfiguration, _ names: [ResolvedName]) {
        update { roster in
            roster.adopt(configuration)
            roster.adopt(names)
        }
    }

    /// Follows new addresses of host names.
    /// - Parameter names: all names of the configuration.
    func follow(_ names: [ResolvedName]) { update { $0.adopt(names) } }

    func healthChanged(_ endpoints: [EndpointHealth]) { update { $0.note(endpoints) } }

    /// Has exactly these endpoints be out of use.
    func setDrained(_ endpoints: Set<EndpointIdentity>) { update { $0.drain(endpoints) } }

    func stop() { sender.shutdown() }

    private func update(_ change: (inout MirrorRoster) -> Void) {
        // The sender follows under the lock, so that no older state comes after a newer one.
        let failure = roster.withLock { roster -> HTTPCallError? in
            let wasEmpty = roster.isEmpty
            change(&roster)
            if wasEmpty && roster.isEmpty { return nil }
            do throws(HTTPCallError) { try sender.follow(roster.targets) } catch { return error }
            return nil
        }
        guard let failure else { return }
        logger.error("mirror not started", ("code", "\(failure.code)"), ("reason", failure.message))
    }
}
