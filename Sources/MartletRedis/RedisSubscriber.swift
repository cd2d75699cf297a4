package import MartletCore
package import MartletIO

/// A subscription to one channel on its own connection, with automatic reconnection.
///
/// Redis does not buffer messages for disconnected subscribers: messages published in the meantime are lost. `onGap` is
/// called whenever that may have happened.
package final class RedisSubscriber: Sendable {
    private let owner: RedisConnectionOwner

    /// Creates a subscriber, which connects after `start()`.
    ///
    /// Both callbacks run on the event loop and must not block. `onGap` is called after every subscription, including
    /// the first, and before its messages.
    /// - Parameters:
    ///   - channel: the full name of the channel; a message larger than 16 KiB closes the connection.
    ///   - onMessage: receives the payload of each message.
    ///   - onGap: called when messages may have been missed.
    /// - Throws: a `tls.` code if the CA file of the URL is unusable.
    package init(
        _ url: RedisURL, options: RedisOptions = .listening, channel: String, loop: ServiceLoop, resolver: Resolver,
        clock: Clock, logger: Logger, onMessage: @escaping @Sendable ([UInt8]) -> Void,
        onGap: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        let listener = RedisConnectionConfiguration.Listener(channel: channel, onMessage: onMessage, onGap: onGap)
        owner = try RedisConnectionOwner(
            url, options: options, listener: listener, loop: loop, resolver: resolver, clock: clock, logger: logger)
    }

    /// The status of the connection; `connected` means subscribed.
    package var status: RedisStatus { owner.recorder.status }

    /// Starts connecting, and reconnects until `shutdown()`.
    package func start() { owner.start() }

    /// Closes the connection without waiting; a message being delivered may still arrive.
    package func shutdown() { owner.shutdown() }

    /// Waits until subscribed.
    /// - Throws: the error of the current connection attempt if it fails.
    package func waitUntilConnected() async throws(StoreError) { try await owner.waitUntilConnected() }
}

extension RedisOptions {
    /// Options for a mostly idle connection; a dead one is detected within 2 s.
    package static var listening: RedisOptions {
        var options = RedisOptions()
        options.heartbeatInterval = .seconds(1)
        options.commandTimeout = .milliseconds(900)
        options.clientName = "martlet-listener"
        return options
    }
}
