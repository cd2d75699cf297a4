internal import MartletAdmin
internal import MartletConfig
internal import MartletCore

/// A part of the gateway besides its loops: it is made with the gateway, follows its configurations, and ends with it.
///
/// ``Gateway/parts`` lists them. What leads to a new configuration goes through the list from its beginning, what
/// undoes or ends something from its end. A step that a part does not have does nothing.
protocol GatewayPart: Sendable {
    /// Makes ready what a configuration needs; what serves the one before does not change.
    /// - Throws: if it cannot be served. A reload then has every part ``abandon(_:keeping:in:)`` it, a start ends.
    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError)

    /// Follows a configuration before the loops do, for what they use of it.
    func lead(_ change: GatewayChange, in gateway: Gateway)

    /// Follows a configuration after the loops.
    func follow(_ change: GatewayChange, in gateway: Gateway)

    /// Releases what a configuration has for itself that will not be served.
    /// - Parameter graph: `nil` if it could not be built.
    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async

    /// What ends the work in progress of a configuration that has served; it keeps nothing else of it.
    func retire(_ graph: Graph) -> (@Sendable () async -> Void)?

    /// Adds what the admin pages and metrics show of it.
    /// - Parameter graph: the configuration in use.
    func report(into report: inout AdminReport, of graph: Graph, in gateway: Gateway)

    /// Ends what needs the loops, or must not see them end: they drain afterwards.
    func finish(in gateway: Gateway) async

    /// Ends, after the loops have.
    func stop(in gateway: Gateway) async
}

extension GatewayPart {
    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError) {}
    func lead(_ change: GatewayChange, in gateway: Gateway) {}
    func follow(_ change: GatewayChange, in gateway: Gateway) {}
    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async {}
    func retire(_ graph: Graph) -> (@Sendable () async -> Void)? { nil }
    func report(into report: inout AdminReport, of graph: Graph, in gateway: Gateway) {}
    func finish(in gateway: Gateway) async {}
    func stop(in gateway: Gateway) async {}
}

/// The change to a configuration, or the start with the first one.
struct GatewayChange: Sendable {
    /// What has served until now; `nil` at the start.
    let old: Graph?
    let next: Graph
    /// What has asked for it; `nil` at the start.
    let trigger: ReloadTrigger?
    /// Whether a process that this one replaces still runs.
    let hasPredecessor: Bool

    init(from old: Graph, to next: Graph, for trigger: ReloadTrigger) {
        (self.old, self.next, self.trigger, hasPredecessor) = (old, next, trigger, false)
    }

    init(to first: Graph, hasPredecessor: Bool) {
        (old, next, trigger, self.hasPredecessor) = (nil, first, nil, hasPredecessor)
    }

    var configuration: GatewayConfiguration { next.blueprint.configuration }

    var keepsAccounts: Bool { next.accounts?.isSame(as: old?.accounts) ?? (old?.accounts == nil) }
}

/// What a part does while the gateway serves, in a task of its own.
final class BackgroundTask: Sendable {
    private let task = Lock<Task<Void, Never>?>(nil)

    /// Starts it, once.
    func start(_ body: @escaping @Sendable () async -> Void) {
        guard task.withLock({ $0 == nil }) else { return }
        let started = Task { await body() }
        task.withLock { $0 = started }
    }

    func cancel() { task.withLock { $0 }?.cancel() }

    /// Waits until it has ended, if it was started.
    var value: Void { get async { await task.withLock { $0 }?.value } }

    func end() async {
        cancel()
        await value
    }
}
