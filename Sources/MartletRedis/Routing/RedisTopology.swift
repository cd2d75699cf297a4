internal import MartletCore

/// What servers are asked about other servers.
enum TopologyQuestion: Sendable, Hashable {
    /// `CLUSTER SLOTS`, of a node.
    case slots
    /// `SENTINEL MASTER`, of a sentinel.
    case master
    /// `SENTINEL SENTINELS`, of a sentinel.
    case sentinels
}

/// What is to be done to learn where keys are.
enum TopologyAction: Sendable, Equatable {
    /// Connect to a node, unless that is done already.
    case open(RedisURL.Address)
    /// Close the connections to a node.
    case close(RedisURL.Address)
    case openSentinel(RedisURL.Address)
    case closeSentinel(RedisURL.Address)
    case ask(TopologyQuestion, RedisURL.Address)
    /// These slots have another node than before; `nil` for all.
    case moved(SlotSet?)
    /// Sentinels agree on an older epoch than one of them, or all of them, had before.
    case epochLowered(from: Int64, to: Int64)
}

/// Knows which node has a key: events and times in, actions out; without I/O or a clock.
protocol RedisTopology: Sendable {
    /// Whether it can learn that another node has a key.
    var canChange: Bool { get }
    /// When to call `tick`; `nil` for never.
    var nextTick: MonotonicTime? { get }
    /// Nodes that have keys.
    var masters: [RedisURL.Address] { get }
    /// The number of slots that no node has.
    var unassigned: Int { get }
    /// How many maps have been put together.
    var maps: Int { get }

    /// The node that has a key; `nil` while that is not known.
    /// - Parameter slot: `nil` for any node.
    func node(of slot: HashSlot?) -> RedisURL.Address?
    mutating func start(at now: MonotonicTime) -> [TopologyAction]
    mutating func tick(at now: MonotonicTime) -> [TopologyAction]
    /// A node accepts commands; of a sentinel layout, it is a master.
    mutating func nodeReady(_ node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction]
    /// A node cannot be reached, or is no longer a master.
    mutating func nodeDown(_ node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction]
    /// A node has rejected a command because another one has the key.
    mutating func moved(_ slot: HashSlot, to node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction]
    /// What is known may be outdated.
    mutating func suspect(at now: MonotonicTime) -> [TopologyAction]
    mutating func sentinelReady(_ sentinel: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction]
    mutating func sentinelDown(_ sentinel: RedisURL.Address)
    /// - Parameter reply: `nil` if there was none.
    mutating func answered(
        _ question: TopologyQuestion, by server: RedisURL.Address, _ reply: RedisReply?, at now: MonotonicTime
    ) -> [TopologyAction]
}

extension RedisTopology {
    var nextTick: MonotonicTime? { nil }
    var unassigned: Int { 0 }
    var maps: Int { 0 }
    mutating func tick(at now: MonotonicTime) -> [TopologyAction] { [] }
    mutating func nodeReady(_ node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] { [] }
    mutating func nodeDown(_ node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] { [] }
    mutating func moved(_ slot: HashSlot, to node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] { [] }
    mutating func suspect(at now: MonotonicTime) -> [TopologyAction] { [] }
    mutating func sentinelReady(_ sentinel: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] { [] }
    mutating func sentinelDown(_ sentinel: RedisURL.Address) {}
    mutating func answered(
        _ question: TopologyQuestion, by server: RedisURL.Address, _ reply: RedisReply?, at now: MonotonicTime
    ) -> [TopologyAction] { [] }
}

/// One server.
struct SingleTopology: RedisTopology {
    private let address: RedisURL.Address

    init(_ address: RedisURL.Address) { self.address = address }

    var canChange: Bool { false }
    var masters: [RedisURL.Address] { [address] }
    func node(of slot: HashSlot?) -> RedisURL.Address? { address }
    mutating func start(at now: MonotonicTime) -> [TopologyAction] { [.open(address)] }
}
