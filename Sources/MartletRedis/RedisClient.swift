package import MartletCore
package import MartletIO
internal import MartletTLS

/// Deadlines and bounds of a Redis client.
package struct RedisOptions: Sendable {
    /// From the caller's word to the reply; what takes longer is an outage and costs the connection.
    package var commandTimeout = Duration.milliseconds(500)
    /// From the name's look-up to the end of the handshake.
    package var connectTimeout = Duration.seconds(1)
    /// How often an idle connection is asked for a sign of life.
    package var heartbeatInterval = Duration.seconds(5)
    /// Commands that may wait for replies at once; more fail as `redis.overloaded`.
    package var maximumInFlight = 1024
    /// What `CLIENT LIST` shows.
    package var clientName = "martlet"

    package init() {}
}

/// What a link is made of; immutable.
struct RedisLinkConfiguration: Sendable, CustomStringConvertible {
    struct Security: Sendable {
        var context: TLSClientContext
        var serverName: String
    }

    var address: RedisURL.Address
    var security: Security?
    var settings: RedisConnectionState.Settings
    var commandTimeout: Duration
    var connectTimeout: Duration
    var heartbeatInterval: Duration
    var resolver: Resolver
    var clock: Clock
    var logger: Logger
    /// The link itself, for what comes from other threads.
    var handle: LoopBound<RedisLink>
    /// The URL without what is secret.
    var description: String
}

/// One pipelined connection to Redis that is made anew whenever it ends.
///
/// While it is down every command fails at once. A command is sent at most once: when the connection ends before the
/// reply, its outcome is unknown and it fails as `redis.connection_lost` or `redis.timeout`.
package final class RedisClient: Sendable {
    private let configuration: RedisLinkConfiguration
    private let board: RedisBoard
    private let handle: LoopBound<RedisLink>

    /// Makes a client; nothing is sent before `start()`.
    /// - Throws: a `tls.` code when the CA file of the URL cannot be used.
    package init(
        _ url: RedisURL, options: RedisOptions, loop: EventLoop, resolver: Resolver, clock: Clock, logger: Logger
    ) throws(StoreError) {
        var settings = RedisConnectionState.Settings()
        settings.user = url.user
        settings.password = url.password
        settings.database = url.database
        settings.clientName = options.clientName
        settings.maximumInFlight = options.maximumInFlight
        handle = LoopBound(loop)
        configuration = RedisLinkConfiguration(
            address: url.address, security: try RedisClient.security(url), settings: settings,
            commandTimeout: options.commandTimeout, connectTimeout: options.connectTimeout,
            heartbeatInterval: options.heartbeatInterval, resolver: resolver, clock: clock, logger: logger,
            handle: handle, description: url.description)
        board = RedisBoard(maximumInFlight: options.maximumInFlight, now: clock.monotonicTime)
    }

    private static func security(_ url: RedisURL) throws(StoreError) -> RedisLinkConfiguration.Security? {
        guard let security = url.security, case .tcp(let host, _) = url.address else { return nil }
        do {
            let trust: TLSClientOptions.Trust = security.caFile.map { .file($0) } ?? .system
            let context = try TLSClientContext(TLSClientOptions(trust: trust))
            return RedisLinkConfiguration.Security(context: context, serverName: host)
        } catch {
            throw StoreError(code: error.code, message: error.message)
        }
    }

    /// How it stands.
    package var status: RedisStatus { board.status }

    /// Starts to connect, and to reconnect for ever.
    package func start() {
        let (handle, configuration, board) = (handle, configuration, board)
        _ = handle.loop.execute {
            guard handle.value == nil, board.status.state != .stopped else { return }
            let link = RedisLink(loop: handle.loop, configuration: configuration, board: board)
            handle.value = link
            link.start()
        }
    }

    /// Ends the connection; commands that wait fail as `redis.stopped` or `redis.connection_lost`.
    ///
    /// Does not wait.
    package func shutdown() {
        board.stopped(at: configuration.clock.monotonicTime)
        let handle = handle
        _ = handle.loop.execute {
            handle.value?.stop()
            handle.value = nil
        }
    }

    /// Waits until the connection stands, at most until the attempt under way has failed.
    package func settle() async throws(StoreError) {
        let handle = handle
        let failure: StoreError? = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                guard let link = handle.value else { return continuation.resume(returning: .stopped) }
                link.whenSettled { continuation.resume(returning: $0) }
            }
            if !accepted { continuation.resume(returning: .stopped) }
        }
        if let failure { throw failure }
    }

    /// Sends one command, once.
    /// - Parameters:
    ///   - arguments: the command's name and what belongs to it.
    ///   - expectation: which replies make sense; another one costs the connection.
    /// - Returns: the reply; `.error` only for refusals that concern the command alone.
    /// - Throws: a `redis.`, `io.` or `tls.` code for every kind of outage.
    package func command(
        _ arguments: [[UInt8]], expecting expectation: RedisExpectation = .anything
    ) async throws(StoreError) -> RedisReply {
        try board.admit()
        let deadline = configuration.clock.monotonicTime + configuration.commandTimeout
        let handle = handle
        let answer: RedisLink.Answer = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                guard let link = handle.value else { return continuation.resume(returning: .failure(.stopped)) }
                link.submit(arguments, expecting: expectation, deadline: deadline) {
                    continuation.resume(returning: $0)
                }
            }
            if !accepted { continuation.resume(returning: .failure(.stopped)) }
        }
        switch answer {
        case .success(let answered):
            board.leave(nil, latency: answered.latency)
            return answered.reply
        case .failure(let error):
            board.leave(error, latency: nil)
            throw error
        }
    }
}
