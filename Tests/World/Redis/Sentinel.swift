/// What a sentinel knows of the servers that it watches, which may be outdated.
package struct RedisSentinelView {
    /// The name of the master, as clients ask for it.
    package var name: String
    package var master: RedisAddress
    /// Grows with each failover.
    package var epoch: Int64 = 0
    package var replicas: [RedisAddress] = []
    /// The servers that it cannot reach.
    package var down: Set<RedisAddress> = []
    /// The other sentinels.
    package var others: [RedisAddress] = []

    package init(name: String, master: RedisAddress) {
        self.name = name
        self.master = master
    }

    fileprivate func fields(of server: RedisAddress, _ role: String, _ more: [(String, String)] = []) -> Reply {
        let flags = role + (down.contains(server) ? ",s_down,disconnected" : "")
        let names = ["master": name, "slave": "\(server.host):\(server.port)"]
        let all =
            [
                ("name", names[role] ?? server.nodeID), ("ip", server.host), ("port", String(server.port)),
                ("runid", server.nodeID), ("flags", flags),
            ] + more
        return .array(all.flatMap { [.text($0.0), .text($0.1)] })
    }

    fileprivate var masterFields: Reply {
        fields(
            of: master, "master",
            [
                ("config-epoch", String(epoch)), ("num-slaves", String(replicas.count)),
                ("num-other-sentinels", String(others.count)), ("quorum", String((others.count + 1) / 2 + 1)),
            ])
    }
}

extension CommandRule {
    /// Questions to a sentinel.
    static let sentinelCommands = [
        question("master") { $0.masterFields },
        question("replicas") { view in .array(view.replicas.map { view.fields(of: $0, "slave") }) },
        question("sentinels") { view in .array(view.others.map { view.fields(of: $0, "sentinel") }) },
    ]

    private static func question(
        _ name: String, _ reply: @escaping @Sendable (RedisSentinelView) -> Reply
    ) -> CommandRule {
        CommandRule("sentinel|\(name)", 3, keys: .none, in: .sentinel) { model, call throws(CommandError) in
            guard let view = model.sentinel, call.arguments[2].text == view.name else {
                throw CommandError("ERR No such master with that name")
            }
            return reply(view)
        }
    }
}
