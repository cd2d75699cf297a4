package import MartletCore
package import MartletIO

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

/// One pipelined connection to Redis that is made anew whenever it ends.
///
/// While it is down every command fails at once. A command is sent at most once: when the connection ends before the
/// reply, its outcome is unknown and it fails as `redis.connection_lost` or `redis.timeout`.
package final class RedisClient: Sendable {
    private let owner: RedisLinkOwner

    /// Makes a client; nothing is sent before `start()`.
    /// - Throws: a `tls.` code when the CA file of the URL cannot be used.
    package init(
        _ url: RedisURL, options: RedisOptions, loop: EventLoop, resolver: Resolver, clock: Clock, logger: Logger
    ) throws(StoreError) {
        owner = try RedisLinkOwner(
            url, options: options, listener: nil, loop: loop, resolver: resolver, clock: clock, logger: logger)
    }

    /// How it stands.
    package var status: RedisStatus { owner.board.status }

    /// Starts to connect, and to reconnect for ever.
    package func start() { owner.start() }

    /// Ends the connection; commands that wait fail as `redis.stopped` or `redis.connection_lost`.
    ///
    /// Does not wait.
    package func shutdown() { owner.shutdown() }

    /// Waits until the connection stands, at most until the attempt under way has failed.
    package func settle() async throws(StoreError) { try await owner.settle() }

    /// Sends one command, once.
    /// - Parameters:
    ///   - arguments: the command's name and what belongs to it.
    ///   - expectation: which replies make sense; another one costs the connection.
    /// - Returns: the reply; `.error` only for refusals that concern the command alone.
    /// - Throws: a `redis.`, `io.` or `tls.` code for every kind of outage.
    package func command(
        _ arguments: [[UInt8]], expecting expectation: RedisExpectation = .anything
    ) async throws(StoreError) -> RedisReply {
        let board = owner.board
        try board.admit()
        let deadline = owner.configuration.clock.monotonicTime + owner.configuration.commandTimeout
        let handle = owner.handle
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
