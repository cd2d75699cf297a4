package import MartletCore
package import MartletIO

/// Timeouts and limits of a Redis client.
package struct RedisOptions: Sendable {
    /// The timeout of a command, from the call to the reply; when it expires the connection is closed.
    package var commandTimeout = Duration.milliseconds(500)
    /// The timeout of a connection attempt, from name resolution to the end of the handshake.
    package var connectTimeout = Duration.seconds(1)
    /// The interval of PINGs on an idle connection.
    package var heartbeatInterval = Duration.seconds(5)
    /// The maximum number of commands in flight; further ones fail with `redis.overloaded`.
    package var maximumInFlight = 1024
    /// The name shown by `CLIENT LIST`.
    package var clientName = "martlet"

    package init() {}
}

/// A Redis client with one pipelined connection and automatic reconnection.
///
/// While disconnected, every command fails immediately. A command is sent at most once: if the connection ends before
/// the reply, the outcome is unknown and the command fails with `redis.connection_lost` or `redis.timeout`.
package final class RedisClient: Sendable {
    private let owner: RedisConnectionOwner

    /// Creates a client, which connects after `start()`.
    /// - Throws: a `tls.` code if the CA file of the URL is unusable.
    package init(
        _ url: RedisURL, options: RedisOptions, loop: ServiceLoop, resolver: Resolver, clock: Clock, logger: Logger
    ) throws(StoreError) {
        owner = try RedisConnectionOwner(
            url, options: options, listener: nil, loop: loop, resolver: resolver, clock: clock, logger: logger)
    }

    /// The status of the connection.
    package var status: RedisStatus { owner.recorder.status }

    /// Starts connecting, and reconnects until `shutdown()`.
    package func start() { owner.start() }

    /// Closes the connection without waiting; pending commands fail with `redis.stopped` or `redis.connection_lost`.
    package func shutdown() { owner.shutdown() }

    /// Waits until the client is connected.
    /// - Throws: the error of the current connection attempt if it fails.
    package func waitUntilConnected() async throws(StoreError) { try await owner.waitUntilConnected() }

    /// Sends one command at most once.
    /// - Parameters:
    ///   - arguments: the command's name and its arguments.
    ///   - expectation: the valid types of reply; any other closes the connection.
    /// - Returns: the reply; `.error` only for errors of this command, not of the server.
    /// - Throws: a `redis.`, `io.` or `tls.` code for every kind of outage.
    package func command(
        _ arguments: [[UInt8]], expecting expectation: RedisExpectation = .anything
    ) async throws(StoreError) -> RedisReply {
        let recorder = owner.recorder
        try recorder.beginCommand()
        let deadline = owner.configuration.clock.monotonicTime + owner.configuration.commandTimeout
        let handle = owner.handle
        let result: RedisConnection.CommandResult = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                guard let connection = handle.value else { return continuation.resume(returning: .failure(.stopped)) }
                connection.submit(arguments, expecting: expectation, deadline: deadline) {
                    continuation.resume(returning: $0)
                }
            }
            if !accepted { continuation.resume(returning: .failure(.stopped)) }
        }
        switch result {
        case .success(let timed):
            recorder.finishCommand(nil, latency: timed.latency)
            return timed.reply
        case .failure(let error):
            recorder.finishCommand(error, latency: nil)
            throw error
        }
    }
}
