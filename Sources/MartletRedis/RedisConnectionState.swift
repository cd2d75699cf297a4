package import MartletCore

/// One connection to Redis as a value: bytes and times in, actions out; no socket and no clock inside.
///
/// Replies belong to commands by their order alone, so whatever puts that order in doubt ends the connection: a
/// deadline that has passed, bytes that are not RESP, a reply nobody waits for or of a type its command cannot have.
package struct RedisConnectionState: ~Copyable {
    /// Who we are to the server, and the bounds we keep.
    package struct Settings: Sendable {
        package var user: String?
        package var password: Secret?
        package var database = 0
        package var clientName = "martlet"
        package var limits = RESPReader.Limits()
        /// Commands that may wait for their replies at once.
        package var maximumInFlight = 1024
        /// Bytes that may wait to be sent.
        package var maximumUnsent = 4 * 1024 * 1024
        /// The channel to listen to; a connection that listens takes no commands.
        package var channel: String?
        /// Bytes of one message on the channel.
        package var maximumMessage = 16 * 1024

        package init() {}
    }

    /// A command of a caller, as the caller knows it.
    package typealias Ticket = UInt64

    /// What the owner of the transport has to do, in order.
    package enum Action: Sendable {
        /// The handshake is through: commands may come.
        case ready
        case reply(Ticket, RedisReply, latency: Duration)
        case failed(Ticket, StoreError)
        /// Somebody published this on the channel.
        case message([UInt8])
        /// Close the transport. Every command has been answered by the actions before this one.
        case close(StoreError)
    }

    private enum Purpose {
        case authenticate, select, introduce, greet, subscribe, heartbeat
        case command(Ticket, RedisExpectation)
    }

    private struct Waiting {
        let purpose: Purpose
        let sent: MonotonicTime
        let deadline: MonotonicTime
    }

    /// `leaving` waits for the replies that are under way, and takes no more commands.
    private enum Phase { case greeting, ready, leaving, closed }

    /// What is to be written to the transport, in order.
    package private(set) var output = ByteBuffer()

    private let settings: Settings
    private var reader: RESPReader
    private var phase = Phase.greeting
    private var waiting = FirstInFirstOut<Waiting>()
    /// Why the handshake cannot succeed, from its first refused step; or why the connection is being left.
    private var refusal: StoreError?

    /// A connection that has just been opened; `begin` comes first.
    package init(_ settings: Settings) throws(StoreError) {
        self.settings = settings
        reader = try RESPReader(limits: settings.limits)
    }

    /// The handshake is through.
    package var isReady: Bool { phase == .ready }
    /// Commands that wait for replies.
    package var inFlight: Int { waiting.count }
    /// When `expire` has something to do, unless replies come first.
    package var nextDeadline: MonotonicTime? { waiting.first?.deadline }

    /// Writes the whole handshake: one round trip.
    package mutating func begin(at now: MonotonicTime, deadline: MonotonicTime) throws(StoreError) {
        if let password = settings.password {
            let user = settings.user.map { [Array($0.utf8)] } ?? []
            let command = password.withBytes { [Array("AUTH".utf8)] + user + [$0] }
            try write(command, .authenticate, at: now, deadline: deadline)
        }
        if settings.database != 0 {
            try write(["SELECT", String(settings.database)], .select, at: now, deadline: deadline)
        }
        try write(["CLIENT", "SETNAME", settings.clientName], .introduce, at: now, deadline: deadline)
        try write(["PING"], .greet, at: now, deadline: deadline)
        if let channel = settings.channel {
            try write(["SUBSCRIBE", channel], .subscribe, at: now, deadline: deadline)
        }
    }

    /// Writes a caller's command.
    /// - Throws: when it was not written: `redis.not_connected`, `redis.overloaded`, `redis.command_invalid`.
    package mutating func submit(
        _ ticket: Ticket, _ arguments: [[UInt8]], expecting expectation: RedisExpectation, at now: MonotonicTime,
        deadline: MonotonicTime
    ) throws(StoreError) {
        guard phase == .ready, settings.channel == nil else { throw .notConnected }
        guard waiting.count < settings.maximumInFlight, output.count < settings.maximumUnsent else { throw .overloaded }
        try write(arguments, .command(ticket, expectation), at: now, deadline: deadline)
    }

    /// Asks for a sign of life when nothing else is under way.
    package mutating func heartbeat(at now: MonotonicTime, deadline: MonotonicTime) throws(StoreError) {
        guard phase == .ready, waiting.count == 0 else { return }
        try write(["PING"], .heartbeat, at: now, deadline: deadline)
    }

    /// Hands out what is to be written to the transport.
    package mutating func takeOutput(into wire: inout ByteBuffer) {
        unsafe wire.append(output.bytes)
        output.removeAll()
    }

    /// Takes what came from the transport.
    package mutating func received(_ bytes: UnsafeBufferPointer<UInt8>, at now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        var rest = unsafe bytes[...]
        do {
            while unsafe rest.count > 0, phase != .closed {
                let piece = unsafe rest.prefix(RESPReader.pieceBytes)
                unsafe rest = rest.dropFirst(piece.count)
                try unsafe reader.feed(UnsafeBufferPointer(rebasing: piece))
                while phase != .closed, let reply = try reader.next() { settle(reply, at: now, into: &actions) }
            }
        } catch {
            end(error, into: &actions)
        }
        return actions
    }

    /// Ends the connection when the oldest command has waited too long: its reply could be taken for another's.
    package mutating func expire(at now: MonotonicTime) -> [Action] {
        guard let oldest = waiting.first, oldest.deadline <= now else { return [] }
        var actions: [Action] = []
        if case .command(let ticket, _) = oldest.purpose {
            _ = waiting.popFirst()
            actions.append(.failed(ticket, .timeout))
        }
        end(phase == .greeting ? .connectTimeout : .timeout, into: &actions)
        return actions
    }

    /// The transport is gone: answers everyone who waits.
    ///
    /// What became of their commands is unknown.
    package mutating func lost(_ error: StoreError) -> [Action] {
        var actions: [Action] = []
        end(error, into: &actions)
        return actions
    }

    private mutating func write(
        _ words: [String], _ purpose: Purpose, at now: MonotonicTime, deadline: MonotonicTime
    ) throws(StoreError) {
        try write(words.map { Array($0.utf8) }, purpose, at: now, deadline: deadline)
    }

    private mutating func write(
        _ arguments: [[UInt8]], _ purpose: Purpose, at now: MonotonicTime, deadline: MonotonicTime
    ) throws(StoreError) {
        try RESPCommand.append(arguments, to: &output)
        waiting.append(Waiting(purpose: purpose, sent: now, deadline: deadline))
    }

    private mutating func settle(_ reply: RedisReply, at now: MonotonicTime, into actions: inout [Action]) {
        if phase == .ready, let channel = settings.channel, let message = RedisMessage(reply) {
            return take(message, from: channel, into: &actions)
        }
        guard let next = waiting.popFirst() else {
            // A server that has no room says so before it is asked anything.
            guard case .error(let kind) = reply else { return end(.unexpectedReply, into: &actions) }
            return end(RedisFailure.refused(kind), into: &actions)
        }
        switch next.purpose {
        case .command(let ticket, let expectation):
            settle(ticket, reply, expectation, latency: now.since(next.sent), into: &actions)
        case .heartbeat: settleHeartbeat(reply, into: &actions)
        default: settleHandshake(next.purpose, reply, into: &actions)
        }
        if phase == .leaving, waiting.count == 0 { end(.notConnected, into: &actions) }
    }

    private mutating func take(_ message: RedisMessage, from channel: String, into actions: inout [Action]) {
        guard message.channel.elementsEqual(channel.utf8) else { return end(.unexpectedReply, into: &actions) }
        guard message.payload.count <= settings.maximumMessage else {
            let reason = "a message is over \(settings.maximumMessage) bytes"
            return end(StoreError(code: .redisReplyTooLarge, message: reason), into: &actions)
        }
        actions.append(.message(message.payload))
    }

    private mutating func settleHeartbeat(_ reply: RedisReply, into actions: inout [Action]) {
        switch reply {
        case .error("NOAUTH"): end(RedisFailure.refused("NOAUTH"), into: &actions)
        // Any other answer is a sign of life. Who listens is answered in the form of a message.
        case .error: break
        case .array where settings.channel != nil, .status where settings.channel == nil: break
        default: end(.unexpectedReply, into: &actions)
        }
    }

    private mutating func settle(
        _ ticket: Ticket, _ reply: RedisReply, _ expectation: RedisExpectation, latency: Duration,
        into actions: inout [Action]
    ) {
        if case .error(let kind) = reply, let outage = RedisFailure.outage(kind) {
            actions.append(.failed(ticket, outage))
            switch kind {
            // The handshake of the next connection finds out what is wrong.
            case "NOAUTH": end(outage, into: &actions)
            // Another server may be the master now, behind the same name.
            case "READONLY": leave(outage)
            default: break
            }
            return
        }
        guard expectation.allows(reply) else {
            actions.append(.failed(ticket, .unexpectedReply))
            return end(.unexpectedReply, into: &actions)
        }
        actions.append(.reply(ticket, reply, latency: latency))
    }

    private mutating func settleHandshake(_ purpose: Purpose, _ reply: RedisReply, into actions: inout [Action]) {
        switch (purpose, reply) {
        case (_, .error("MAXCLIENTS")), (_, .error("DENIED")):
            // Said before anything was asked, whatever the first step was.
            guard case .error(let kind) = reply else { return }
            return end(RedisFailure.refused(kind), into: &actions)
        case (.introduce, _): break
        case (.subscribe, .array(let parts)) where parts.first == .bytes(Array("subscribe".utf8)): break
        case (.authenticate, .status("OK")), (.select, .status("OK")), (.greet, .status("PONG")): break
        // A user that may not ask for a PONG is let in all the same.
        case (.greet, .error("NOPERM")): break
        case (.authenticate, .error("ERR")), (.authenticate, .error("WRONGPASS")):
            let isWrong = reply == .error(kind: "WRONGPASS")
            refuse(isWrong ? RedisFailure.refused("WRONGPASS") : .authenticationRefused)
        case (.select, .error("ERR")): refuse(.databaseRefused)
        case (_, .error(let kind)): refuse(RedisFailure.refused(kind))
        default: return end(.unexpectedReply, into: &actions)
        }
        switch purpose {
        case .greet where settings.channel == nil, .subscribe: break
        default: return
        }
        if let refusal { return end(refusal, into: &actions) }
        phase = .ready
        actions.append(.ready)
    }

    private mutating func refuse(_ error: StoreError) {
        if refusal == nil { refusal = error }
    }

    private mutating func leave(_ reason: StoreError) {
        guard phase == .ready else { return }
        phase = .leaving
        refusal = reason
    }

    private mutating func end(_ error: StoreError, into actions: inout [Action]) {
        guard phase != .closed else { return }
        // What the server has said tells more than that it then hung up.
        let reason = refusal ?? error
        phase = .closed
        while let next = waiting.popFirst() {
            if case .command(let ticket, _) = next.purpose { actions.append(.failed(ticket, .connectionLost)) }
        }
        output.removeAll()
        actions.append(.close(reason))
    }
}

extension StoreError {
    static let notConnected = StoreError(code: .redisNotConnected, message: "there is no connection to Redis")
    static let overloaded = StoreError(code: .redisOverloaded, message: "too many commands wait for Redis")
    static let stopped = StoreError(code: .redisStopped, message: "the Redis client has stopped")
    static let timeout = StoreError(code: .redisTimeout, message: "Redis did not answer in time")
    static let connectTimeout = StoreError(code: .redisConnectTimeout, message: "Redis did not let us in in time")
    static let connectionLost = StoreError(code: .redisConnectionLost, message: "the connection to Redis was lost")
    static let unexpectedReply = StoreError(
        code: .redisReplyUnexpected, message: "Redis answered what the command cannot have as an answer")
    static let authenticationRefused = StoreError(
        code: .redisAuthRefused, message: "Redis refuses to be authenticated to (is a password configured there?)")
    static let databaseRefused = StoreError(code: .redisDatabaseRefused, message: "Redis has no such database")
}
