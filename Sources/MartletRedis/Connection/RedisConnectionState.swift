package import MartletCore

/// The state machine of one Redis connection: bytes and times in, actions out; without I/O or a clock.
///
/// Replies match commands by order alone, so whatever makes that order uncertain closes the connection: an expired
/// deadline, bytes that are not RESP, an unsolicited reply, or one of the wrong type for its command.
package struct RedisConnectionState: ~Copyable {
    /// Credentials and limits of a connection.
    package struct Settings: Sendable {
        package var credentials: RedisURL.Credentials?
        package var database = 0
        package var clientName = "martlet"
        package var limits = RESPReader.Limits()
        /// The maximum number of commands in flight.
        package var maximumInFlight = 1024
        /// The maximum number of unsent bytes.
        package var maximumUnsent = 4 * 1024 * 1024
        /// Whether the server is asked for its role, and rejected if it is a replica.
        package var requiresMaster = false
        /// Whether the server is a replica of a cluster that is to serve reads.
        package var readsReplica = false
        /// The channel to subscribe to; a subscribed connection accepts no commands.
        package var channel: String?
        /// The maximum size of a message on the channel in bytes.
        package var maximumMessage = 16 * 1024

        package init() {}
    }

    /// Identifies a command of a caller.
    package typealias Ticket = UInt64

    /// An action for the owner of the transport, to be performed in order.
    package enum Action: Sendable {
        /// The handshake has completed, and commands are accepted.
        case ready
        case reply(Ticket, RedisReply, latency: Duration)
        case failed(Ticket, StoreError)
        /// A message was published on the channel.
        case message([UInt8])
        /// Close the transport. Earlier actions have completed every command.
        case close(StoreError)
    }

    private enum Purpose {
        case authenticate, select, setName, role, readOnly, ping, subscribe, heartbeat, asking
        case command(Ticket, RedisExpectation)
    }

    private struct Waiting {
        let purpose: Purpose
        let sent: MonotonicTime
        let deadline: MonotonicTime
    }

    /// `draining` waits for pending replies and accepts no more commands.
    private enum Phase { case handshaking, ready, draining, closed }

    /// Bytes to write to the transport.
    package private(set) var output = ByteBuffer()

    private let settings: Settings
    private var reader: RESPReader
    private var phase = Phase.handshaking
    private var waiting = FIFO<Waiting>()
    /// The error of the first handshake step that failed, or the reason for draining.
    private var failure: StoreError?

    /// The state of a new connection; call `begin` first.
    package init(_ settings: Settings) throws(StoreError) {
        self.settings = settings
        reader = try RESPReader(limits: settings.limits)
    }

    /// Whether the handshake has completed.
    package var isReady: Bool { phase == .ready }
    /// The number of commands awaiting replies.
    package var inFlight: Int { waiting.count }
    /// When to call `expire`, unless replies arrive earlier.
    package var nextDeadline: MonotonicTime? { waiting.first?.deadline }

    /// Writes the handshake, which is pipelined into one round trip.
    package mutating func begin(at now: MonotonicTime, deadline: MonotonicTime) throws(StoreError) {
        if let credentials = settings.credentials {
            let user = credentials.user.map { [Array($0.utf8)] } ?? []
            let command = credentials.password.withBytes { [Array("AUTH".utf8)] + user + [$0] }
            try write(command, .authenticate, at: now, deadline: deadline)
        }
        if settings.database != 0 {
            try write(["SELECT", String(settings.database)], .select, at: now, deadline: deadline)
        }
        try write(["CLIENT", "SETNAME", settings.clientName], .setName, at: now, deadline: deadline)
        if settings.requiresMaster { try write(["ROLE"], .role, at: now, deadline: deadline) }
        if settings.readsReplica { try write(["READONLY"], .readOnly, at: now, deadline: deadline) }
        try write(["PING"], .ping, at: now, deadline: deadline)
        if let channel = settings.channel {
            try write(["SUBSCRIBE", channel], .subscribe, at: now, deadline: deadline)
        }
    }

    /// Writes a command.
    /// - Parameter isAsking: whether it was redirected here for this once (Redis Cluster Specification, "ASK redirection").
    /// - Throws: if it was not written: `redis.not_connected`, `redis.overloaded`, `redis.command_invalid`.
    package mutating func submit(
        _ ticket: Ticket, _ arguments: [[UInt8]], expecting expectation: RedisExpectation, at now: MonotonicTime,
        deadline: MonotonicTime, isAsking: Bool = false
    ) throws(StoreError) {
        guard phase == .ready, settings.channel == nil else { throw .notConnected }
        guard waiting.count < settings.maximumInFlight, output.count < settings.maximumUnsent else { throw .overloaded }
        if isAsking { try write(["ASKING"], .asking, at: now, deadline: deadline) }
        try write(arguments, .command(ticket, expectation), at: now, deadline: deadline)
    }

    /// Sends a PING if no command is pending.
    package mutating func heartbeat(at now: MonotonicTime, deadline: MonotonicTime) throws(StoreError) {
        guard phase == .ready, waiting.count == 0 else { return }
        try write(["PING"], .heartbeat, at: now, deadline: deadline)
    }

    /// Moves the bytes to be written into `buffer`.
    package mutating func takeOutput(into buffer: inout ByteBuffer) {
        unsafe buffer.append(output.bytes)
        output.removeAll()
    }

    /// Processes bytes received from the transport.
    package mutating func received(_ bytes: UnsafeBufferPointer<UInt8>, at now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        var rest = unsafe bytes[...]
        do {
            while unsafe rest.count > 0, phase != .closed {
                let chunk = unsafe rest.prefix(RESPReader.chunkBytes)
                unsafe rest = rest.dropFirst(chunk.count)
                try unsafe reader.feed(UnsafeBufferPointer(rebasing: chunk))
                while phase != .closed, let reply = try reader.next() { handle(reply, at: now, into: &actions) }
            }
        } catch {
            close(error, into: &actions)
        }
        return actions
    }

    /// Closes the connection if the oldest command has timed out, because its late reply could be matched to another.
    package mutating func expire(at now: MonotonicTime) -> [Action] {
        guard let oldest = waiting.first, oldest.deadline <= now else { return [] }
        var actions: [Action] = []
        if case .command(let ticket, _) = oldest.purpose {
            _ = waiting.popFirst()
            actions.append(.failed(ticket, .timeout))
        }
        close(phase == .handshaking ? .connectTimeout : .timeout, into: &actions)
        return actions
    }

    /// Handles the loss of the transport: all pending commands fail, with unknown outcome.
    package mutating func lost(_ error: StoreError) -> [Action] {
        var actions: [Action] = []
        close(error, into: &actions)
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

    private mutating func handle(_ reply: RedisReply, at now: MonotonicTime, into actions: inout [Action]) {
        if phase == .ready, let channel = settings.channel, let message = RedisMessage(reply) {
            return deliver(message, from: channel, into: &actions)
        }
        guard let next = waiting.popFirst() else {
            // A server at its connection limit sends an error before the first command.
            guard case .error(let kind) = reply else { return close(.unexpectedReply, into: &actions) }
            return close(RedisErrorReply.storeError(kind), into: &actions)
        }
        switch next.purpose {
        case .command(let ticket, let expectation):
            complete(ticket, reply, expectation, latency: now.since(next.sent), into: &actions)
        case .heartbeat: completeHeartbeat(reply, into: &actions)
        // If it is rejected, so is the command that follows.
        case .asking: break
        default: completeHandshakeStep(next.purpose, reply, into: &actions)
        }
        if phase == .draining, waiting.count == 0 { close(.notConnected, into: &actions) }
    }

    private mutating func deliver(_ message: RedisMessage, from channel: String, into actions: inout [Action]) {
        guard message.channel.elementsEqual(channel.utf8) else { return close(.unexpectedReply, into: &actions) }
        guard message.payload.count <= settings.maximumMessage else {
            let reason = "message larger than \(settings.maximumMessage) bytes"
            return close(StoreError(code: .redisReplyTooLarge, message: reason), into: &actions)
        }
        actions.append(.message(message.payload))
    }

    private mutating func completeHeartbeat(_ reply: RedisReply, into actions: inout [Action]) {
        switch reply {
        case .error("NOAUTH"): close(RedisErrorReply.storeError("NOAUTH"), into: &actions)
        // Any other reply proves that the connection is alive. A subscribed connection gets the reply as a message.
        case .error: break
        case .array where settings.channel != nil, .status where settings.channel == nil: break
        default: close(.unexpectedReply, into: &actions)
        }
    }

    private mutating func complete(
        _ ticket: Ticket, _ reply: RedisReply, _ expectation: RedisExpectation, latency: Duration,
        into actions: inout [Action]
    ) {
        if case .error(let kind) = reply, let outage = RedisErrorReply.outage(kind) {
            actions.append(.failed(ticket, outage))
            switch kind {
            // The handshake of the next connection determines the cause.
            case "NOAUTH": close(outage, into: &actions)
            // After a failover the same name may resolve to another master.
            case "READONLY": drain(outage)
            default: break
            }
            return
        }
        guard expectation.allows(reply) else {
            actions.append(.failed(ticket, .unexpectedReply))
            return close(.unexpectedReply, into: &actions)
        }
        actions.append(.reply(ticket, reply, latency: latency))
    }

    private mutating func completeHandshakeStep(_ purpose: Purpose, _ reply: RedisReply, into actions: inout [Action]) {
        switch (purpose, reply) {
        case (_, .error("MAXCLIENTS")), (_, .error("DENIED")):
            // Sent when the connection was accepted, before the first step.
            guard case .error(let kind) = reply else { return }
            return close(RedisErrorReply.storeError(kind), into: &actions)
        case (.setName, _): break
        // Without permission for ROLE, the first rejected write tells.
        case (.role, .error("NOPERM")): break
        case (.role, .array(let parts)):
            if parts.first != .bytes(Array("master".utf8)) { fail(RedisErrorReply.storeError("READONLY")) }
        case (.subscribe, .array(let parts)) where parts.first == .bytes(Array("subscribe".utf8)): break
        case (.authenticate, .status("OK")), (.select, .status("OK")), (.readOnly, .status("OK")),
            (.ping, .status("PONG")):
            break
        // A user without permission for PING is still authenticated.
        case (.ping, .error("NOPERM")): break
        case (.authenticate, .error("ERR")), (.authenticate, .error("WRONGPASS")):
            let isWrong = reply == .error(kind: "WRONGPASS")
            fail(isWrong ? RedisErrorReply.storeError("WRONGPASS") : .authenticationRefused)
        case (.select, .error("ERR")): fail(.databaseRefused)
        case (_, .error(let kind)): fail(RedisErrorReply.storeError(kind))
        case (_, .redirect): fail(RedisErrorReply.storeError("MOVED"))
        default: return close(.unexpectedReply, into: &actions)
        }
        switch purpose {
        case .ping where settings.channel == nil, .subscribe: break
        default: return
        }
        if let failure { return close(failure, into: &actions) }
        phase = .ready
        actions.append(.ready)
    }

    private mutating func fail(_ error: StoreError) { if failure == nil { failure = error } }

    private mutating func drain(_ reason: StoreError) {
        guard phase == .ready else { return }
        phase = .draining
        failure = reason
    }

    private mutating func close(_ error: StoreError, into actions: inout [Action]) {
        guard phase != .closed else { return }
        // An error reply is more specific than the close that follows it.
        let reason = failure ?? error
        phase = .closed
        while let next = waiting.popFirst() {
            if case .command(let ticket, _) = next.purpose { actions.append(.failed(ticket, .connectionLost)) }
        }
        output.removeAll()
        actions.append(.close(reason))
    }
}

extension StoreError {
    static let notConnected = StoreError(code: .redisNotConnected, message: "not connected to Redis")
    static let overloaded = StoreError(code: .redisOverloaded, message: "too many Redis commands in flight")
    static let stopped = StoreError(code: .redisStopped, message: "Redis client stopped")
    static let timeout = StoreError(code: .redisTimeout, message: "Redis command timed out")
    static let connectTimeout = StoreError(code: .redisConnectTimeout, message: "Redis connection timed out")
    static let connectionLost = StoreError(code: .redisConnectionLost, message: "Redis connection lost")
    static let unexpectedReply = StoreError(code: .redisReplyUnexpected, message: "unexpected type of reply")
    static let authenticationRefused = StoreError(
        code: .redisAuthRefused, message: "Redis rejected AUTH (does the server have a password?)")
    static let databaseRefused = StoreError(code: .redisDatabaseRefused, message: "Redis rejected the database number")
}
