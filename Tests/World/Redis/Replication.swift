/// What a server knows of replication: as a master its replicas, as a replica its master.
struct Replication {
    /// A published message.
    struct Message {
        let channel: [UInt8]
        let payload: [UInt8]
    }

    /// What one command or script has changed.
    struct Write {
        let offset: Int64
        let changes: [RedisData.Change]
        let messages: [Message]
    }

    /// The number of writes.
    var offset: Int64 = 0
    var links: [ReplicaLink] = []
    /// The master, where this is a replica of one that still exists.
    weak var master: RedisModel?
    /// The address of the master, if this is a replica.
    var masterAddress: RedisAddress?
    /// Whether a replica receives from its master.
    var isLinked = true
    /// What the command in progress has published.
    var messages: [Message] = []
    /// Clients that wait for replicas.
    var waiting: [RedisPeer] = []
}

/// What a master sends to one of its replicas, and how far that is behind.
package final class ReplicaLink {
    package let replica: RedisModel
    /// Writes that the replica does not have yet, the oldest first.
    private var queue: [Replication.Write] = []
    /// What the replica has acknowledged.
    private(set) var acknowledged: Int64 = 0
    /// How many of the newest writes the replica does not have; `Int.max` while it gets none.
    fileprivate(set) var lag = 0
    /// Whether the two are connected.
    fileprivate(set) var isUp = true

    fileprivate init(to replica: RedisModel) { self.replica = replica }

    /// How many writes the replica does not have.
    package var missing: Int { queue.count }

    fileprivate func append(_ write: Replication.Write) {
        queue.append(write)
        advance()
    }

    /// Gives the replica what it may have by now.
    fileprivate func advance() {
        guard isUp, queue.count > lag else { return }
        deliver(queue.count - lag)
    }

    private func deliver(_ count: Int) {
        for write in queue.prefix(count) {
            replica.data.apply(write.changes)
            for message in write.messages { replica.deliver(message.payload, on: message.channel) }
            acknowledged = write.offset
        }
        queue.removeFirst(count)
        replica.replication.offset = acknowledged
    }

    /// Gives the replica what it has received, apart from the last writes, which are lost.
    fileprivate func finish(losing count: Int) { deliver(max(queue.count - count, 0)) }

    /// Copies everything to the replica.
    func resynchronize(with master: RedisModel) {
        replica.data = master.data
        queue = []
        acknowledged = master.replication.offset
        replica.replication.offset = acknowledged
    }
}

/// A `WAIT` that is not over.
struct PendingWait {
    let replicas: Int64
    let offset: Int64
    /// In milliseconds since 1970; `nil` for as long as it takes.
    let deadline: Int64?
}

extension RedisModel {
    /// Whether the server is a replica.
    package var isReplica: Bool { replication.masterAddress != nil }
    /// Whether it is a replica that has lost its master.
    var isStale: Bool { isReplica && !replication.isLinked }
    /// The replicas of a master.
    package var links: [ReplicaLink] { replication.links }

    /// Ends a command: what it has changed and published goes to the replicas.
    /// - Returns: its offset; `nil` if it has changed nothing, or there is no replica.
    @discardableResult
    func commit() -> Int64? {
        let (changes, messages) = (data.takeChanges(), replication.messages)
        replication.messages = []
        guard !changes.isEmpty || !messages.isEmpty, !isReplica, !links.isEmpty else { return nil }
        replication.offset += 1
        let write = Replication.Write(offset: replication.offset, changes: changes, messages: messages)
        for link in links { link.append(write) }
        acknowledge()
        return write.offset
    }

    /// Makes this server a replica of another one, whose data it gets. Its own clients stay.
    package func follow(_ master: RedisModel) {
        replication.master?.replication.links.removeAll { $0.replica === self }
        for link in links { link.replica.replication.isLinked = false }
        replication.links = []
        for peer in replication.waiting {
            let reason = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
            peer.end(with: CommandError(reason))
        }
        (replication.master, replication.masterAddress) = (master, master.address)
        replication.isLinked = true
        let link = ReplicaLink(to: self)
        master.replication.links.append(link)
        link.resynchronize(with: master)
    }

    /// Makes a replica a master.
    /// - Parameter count: how many of the writes that it does not have yet are lost; it gets the others.
    package func promote(losing count: Int) {
        if let master = replication.master, let link = master.links.first(where: { $0.replica === self }) {
            link.finish(losing: count)
            master.replication.links.removeAll { $0 === link }
        }
        (replication.master, replication.masterAddress) = (nil, nil)
        replication.isLinked = true
    }

    /// Lets a replica lag: it never gets the newest writes.
    /// - Parameters:
    ///   - lag: how many; `Int.max` for none at all until this is called again, and 0 for no lag.
    ///   - isUp: whether master and replica are connected; those that were not, and are, have the same again.
    package func setLag(_ lag: Int, of replica: RedisModel, isUp: Bool = true) {
        guard let link = links.first(where: { $0.replica === replica }) else { return }
        let isNew = isUp && !link.isUp
        (link.lag, link.isUp) = (lag, isUp)
        replica.replication.isLinked = isUp
        if isNew { link.resynchronize(with: self) }
        link.advance()
        acknowledge()
    }

    /// When ``advance()`` is to be called, in milliseconds since 1970.
    package var nextDeadline: Int64? { replication.waiting.compactMap { $0.wait?.deadline }.min() }

    /// Ends the waits that are due.
    package func advance() { acknowledge() }

    private func acknowledgements(of offset: Int64) -> Int64 {
        Int64(links.count { $0.isUp && $0.acknowledged >= offset })
    }

    /// Ends the waits that have enough replicas, or no time left.
    private func acknowledge() {
        guard !replication.waiting.isEmpty else { return }
        let now = time
        for peer in replication.waiting {
            guard let wait = peer.wait else { continue }
            let count = acknowledgements(of: wait.offset)
            guard count >= wait.replicas || wait.deadline.map({ $0 <= now }) ?? false else { continue }
            replication.waiting.removeAll { $0 === peer }
            peer.resume(.integer(count))
        }
    }

    fileprivate func wait(_ call: CommandCall) throws(CommandError) -> Reply? {
        guard !isReplica else {
            throw CommandError(
                "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is "
                    + "configured to be writable (which is not the default) writes to replicas are just local and are "
                    + "not propagated.")
        }
        guard let replicas = call.arguments[1].integer else { throw .notAnInteger }
        guard let timeout = call.arguments[2].integer else {
            throw CommandError("ERR timeout is not an integer or out of range")
        }
        guard timeout >= 0 else { throw CommandError("ERR timeout is negative") }
        let count = acknowledgements(of: call.peer.lastWrite)
        guard count < replicas else { return .integer(count) }
        let deadline = timeout == 0 ? nil : data.now.addingReportingOverflow(timeout)
        call.peer.wait = PendingWait(
            replicas: replicas, offset: call.peer.lastWrite,
            deadline: deadline.flatMap { $0.overflow ? nil : $0.partialValue })
        replication.waiting.append(call.peer)
        return nil
    }

    fileprivate var role: Reply {
        if sentinel != nil { return .array([.text("sentinel"), .array([.text(sentinel?.name ?? "")])]) }
        if let master = replication.masterAddress {
            let state = replication.isLinked ? "connected" : "connect"
            return .array([
                .text("slave"), .text(master.host), .count(master.port), .text(state), .integer(replication.offset),
            ])
        }
        let replicas = links.filter(\.isUp).map { link in
            Reply.array(
                [link.replica.address.host, String(link.replica.address.port), String(link.acknowledged)]
                    .map { .text($0) })
        }
        return .array([.text("master"), .integer(replication.offset), .array(replicas)])
    }
}

extension CommandRule {
    /// Commands about replicas.
    static let replicationCommands = [
        CommandRule("role", 1, [.noScript, .loading, .stale], keys: .none, in: .both) { model, _ in model.role },
        CommandRule("wait", 3, .noScript, keys: .none) { model, call throws(CommandError) in try model.wait(call) },
    ]
}
