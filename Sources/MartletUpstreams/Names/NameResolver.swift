private import CLinux
internal import MartletCore
package import MartletIO

/// Looks up host names in the hosts file and by DNS, on a service loop, with the validity of the addresses.
///
/// A bounded number of lookups is in flight, and each ends within ``deadline``, waiting included.
package final class NameResolver: Sendable {
    /// Called once, on the loop or, after its end, on the caller's thread; must not block.
    package typealias Completion = @Sendable (NameReply) -> Void

    /// From the call to the completion.
    package static let deadline = Duration.seconds(5)

    private let loop: ServiceLoop
    private let lookups: LoopBound<NameLookups>

    /// - Parameters:
    ///   - servers: addresses with ports, separated by commas; `nil` for those of `/etc/resolv.conf`.
    ///   - deadline: other than ``deadline`` for tests.
    package init(on loop: ServiceLoop, servers: String? = nil, deadline: Duration = NameResolver.deadline) {
        self.loop = loop
        let lookups = LoopBound<NameLookups>(loop)
        self.lookups = lookups
        _ = loop.execute { lookups.value = NameLookups(on: loop, servers: servers, deadline: deadline) }
    }

    deinit { shutdown() }

    /// Looks a name up.
    package func resolve(_ question: NameQuestion, _ completion: @escaping Completion) {
        let isAccepted = loop.execute { [lookups] in
            guard let lookups = lookups.value else { return completion(.stopped(question)) }
            lookups.add(question, completion)
        }
        if !isAccepted { completion(.stopped(question)) }
    }

    /// The same for a task.
    package func resolve(_ question: NameQuestion) async -> NameReply {
        await withCheckedContinuation { continuation in resolve(question) { continuation.resume(returning: $0) } }
    }

    /// Ends every lookup; call it before the loop's end.
    package func shutdown() {
        _ = loop.execute { [lookups] in
            lookups.value?.stop()
            lookups.value = nil
        }
    }
}

extension NameReply {
    fileprivate static func stopped(_ question: NameQuestion) -> NameReply {
        NameReply(failed: "the resolver has stopped", question.family)
    }
}

/// The lookups that are in flight or wait; used on the loop only.
final class NameLookups {
    /// One lookup, until its completion is called.
    private final class Lookup {
        let question: NameQuestion
        var completion: NameResolver.Completion?
        var timer: LoopTimer?
        var reply: NameReply

        init(_ question: NameQuestion, _ completion: @escaping NameResolver.Completion) {
            self.question = question
            self.completion = completion
            reply = NameReply(ipv4: .unasked, ipv6: .unasked)
        }

        /// Completes it; only the first call has an effect.
        func finish(_ reply: NameReply) {
            timer?.cancel()
            timer = nil
            let completion = self.completion
            self.completion = nil
            completion?(reply)
        }
    }

    private static let maximumInFlight = 64
    private static let resolverFile = "/etc/resolv.conf"

    private let loop: ServiceLoop
    private let servers: String?
    private let deadline: Duration
    private var network: AresChannel?
    private var fileVersion: [Int] = []
    private var inFlight = 0
    private var waiting: [Lookup] = []
    private var isStopped = false

    init(on loop: ServiceLoop, servers: String?, deadline: Duration) {
        (self.loop, self.servers, self.deadline) = (loop, servers, deadline)
    }

    func add(_ question: NameQuestion, _ completion: @escaping NameResolver.Completion) {
        let lookup = Lookup(question, completion)
        lookup.timer = loop.schedule(after: deadline) { [weak lookup] in
            lookup?.finish(NameReply(failed: "no name server responded in time", question.family))
        }
        waiting.append(lookup)
        startWaiting()
    }

    func stop() {
        isStopped = true
        network?.close()
        for lookup in waiting { lookup.finish(.stopped(lookup.question)) }
        waiting = []
    }

    private func startWaiting() {
        while inFlight < Self.maximumInFlight, !waiting.isEmpty, !isStopped {
            let lookup = waiting.removeFirst()
            // Its deadline has passed.
            if lookup.completion != nil { start(lookup) }
        }
    }

    private func start(_ lookup: Lookup) {
        let question = lookup.question
        if let reply = hostsFileReply(question) { return lookup.finish(reply) }
        refreshChannel()
        guard let network else {
            return lookup.finish(NameReply(failed: "c-ares could not be set up", question.family))
        }
        inFlight += 1
        // The families are looked up separately: a failure of one leaves the addresses of the other.
        let families: [(Int32, WritableKeyPath<NameReply, NameReply.Part>)] =
            (question.family == .ipv6 ? [] : [(AF_INET, \.ipv4)])
            + (question.family == .ipv4 ? [] : [(AF_INET6, \.ipv6)])
        var missing = families.count
        for (family, part) in families {
            network.lookUp(question.host, family: family) { [weak self] result in
                lookup.reply[keyPath: part] = result
                missing -= 1
                guard missing == 0 else { return }
                lookup.finish(lookup.reply)
                self?.end()
            }
        }
    }

    private func end() {
        inFlight -= 1
        // Not from within c-ares.
        if !waiting.isEmpty { _ = loop.schedule(after: .zero) { [weak self] in self?.startWaiting() } }
    }

    /// A name in the hosts file is not looked up elsewhere.
    private func hostsFileReply(_ question: NameQuestion) -> NameReply? {
        guard let channel = AresChannel(.hostsFile, on: loop) else { return nil }
        defer { channel.close() }
        let family =
            switch question.family {
            case .any: AF_UNSPEC
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            }
        var found: [SocketEndpoint]?
        channel.lookUp(question.host, family: family) { part in
            if case .found(let addresses, _) = part { found = addresses }
        }
        guard let found else { return nil }
        let (ipv6, ipv4) = (found.filter(\.isIPv6), found.filter { !$0.isIPv6 })
        return NameReply(
            ipv4: question.family == .ipv6 ? .unasked : ipv4.isEmpty ? .absent("") : .found(ipv4, validity: nil),
            ipv6: question.family == .ipv4 ? .unasked : ipv6.isEmpty ? .absent("") : .found(ipv6, validity: nil))
    }

    /// Reads `/etc/resolv.conf` again when it has changed, between lookups.
    private func refreshChannel() {
        if network != nil, inFlight > 0 || servers != nil { return }
        var facts = stat()
        let isThere = unsafe stat(Self.resolverFile, &facts) == 0
        let version = isThere ? [facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, Int(facts.st_ino), facts.st_size] : []
        if network != nil, version == fileVersion { return }
        fileVersion = version
        network?.close()
        network = AresChannel(.network, on: loop, servers: servers)
    }
}
