extension CommandRule {
    /// Commands for the connection, the server, and messages.
    static let serverCommands = [
        CommandRule("ping", -1, .subscribed, keys: .none, in: .both) { model, call throws(CommandError) in
            guard call.arguments.count <= 2 else { throw .argumentCount("ping") }
            let text = call.arguments.dropFirst().first
            guard call.peer.channels.isEmpty else { return .array([.text("pong"), .bytes(text ?? [])]) }
            return text.map { .bytes($0) } ?? .status("PONG")
        },
        CommandRule("auth", -2, connectionFlags.union([.noAuthentication, .allowsBusy]), keys: .none, in: .both) {
            model, call throws(CommandError) in try authenticate(model, call)
        },
        CommandRule("select", 2, [.loading, .stale], keys: .none) { model, call throws(CommandError) in
            guard let number = call.arguments[1].integer else { throw .notAnInteger }
            guard number == 0 || model.slots == nil else {
                throw CommandError("ERR SELECT is not allowed in cluster mode")
            }
            guard number == 0 else {
                model.noteUnknown("select \(number)")
                throw CommandError("ERR DB index is out of range")
            }
            return .ok
        },
        CommandRule("client|setname", 3, connectionFlags, keys: .none, in: .both) { _, _ in .ok },
        CommandRule("time", 1, [.loading, .stale], keys: .none) { model, _ in
            let (seconds, rest) = model.data.now.quotientAndRemainder(dividingBy: 1000)
            return .array([.text(String(seconds)), .text(String(rest * 1000))])
        },
        CommandRule("info", -1, [.loading, .stale], keys: .none) { model, call in
            let sections = call.arguments.dropFirst().map(\.lowercased)
            if sections != ["memory"] { model.noteUnknown("info \(sections.joined(separator: " "))") }
            return .text("# Memory\r\nmaxmemory_policy:\(model.evictionPolicy)\r\n")
        },
        CommandRule("publish", 3, [.loading, .stale], keys: .none) { model, call in
            .count(model.publish(call.arguments[2], on: call.arguments[1]))
        },
        CommandRule("subscribe", -2, connectionFlags.union(.subscribed), keys: .none, in: .both) { model, call in
            for channel in call.arguments.dropFirst().map({ RedisKey($0) }) {
                if !call.peer.channels.contains(channel) {
                    call.peer.channels.append(channel)
                    model.subscribers[channel, default: []].append(call.peer)
                }
                call.peer.send(
                    .array([.text("subscribe"), .bytes(channel.bytes), .count(call.peer.channels.count)]))
            }
            return nil
        },
    ]

    private static let connectionFlags: CommandFlags = [.noScript, .loading, .stale]

    private static func authenticate(_ model: RedisModel, _ call: CommandCall) throws(CommandError) -> Reply {
        guard call.arguments.count <= 3 else { throw .syntax }
        let user = call.arguments.count == 3 ? call.arguments[1].text : "default"
        guard model.password != nil || call.arguments.count == 3 else {
            throw CommandError(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
                    + "configuration is correct?")
        }
        // Without a password the default user has any.
        let isRight = model.password.map { Array($0.utf8) == call.arguments.last } ?? true
        guard user == "default", isRight else {
            throw CommandError("WRONGPASS invalid username-password pair or user is disabled.")
        }
        call.peer.isAuthenticated = true
        return .ok
    }
}

extension RedisModel {
    /// Gives a message to the subscribers here, to those of replicas, and in a cluster to those of all nodes.
    /// - Returns: how many there are here.
    func publish(_ message: [UInt8], on channel: [UInt8]) -> Int {
        if let broadcast {
            broadcast(message, channel)
        } else if !isReplica {
            replication.messages.append(Replication.Message(channel: channel, payload: message))
        }
        return deliver(message, on: channel)
    }

    /// Gives a message to the subscribers here, in the order in which they came.
    @discardableResult
    package func deliver(_ message: [UInt8], on channel: [UInt8]) -> Int {
        let peers = subscribers[RedisKey(channel)] ?? []
        for peer in peers { peer.send(.array([.text("message"), .bytes(channel), .bytes(message)])) }
        return peers.count
    }
}
