package import MartletCore
package import MartletIO

/// A connection of its own that listens to one channel, and is made anew whenever it ends.
///
/// Redis keeps no message for who is away. What was published before a subscription stood is lost to this listener;
/// `onGap` says so, each time.
package final class RedisSubscriber: Sendable {
    private let owner: RedisLinkOwner

    /// Makes a subscriber; nothing is sent before `start()`.
    ///
    /// Both callbacks run on the loop and must not block. `onGap` is called whenever a subscription has come about, the
    /// first one too, and before the messages that follow it.
    /// - Parameters:
    ///   - channel: the channel's whole name; a longer message than 16 KiB on it costs the connection.
    ///   - onMessage: gets what was published.
    ///   - onGap: is told that messages may have been missed.
    /// - Throws: a `tls.` code when the CA file of the URL cannot be used.
    package init(
        _ url: RedisURL, options: RedisOptions = .listening, channel: String, loop: EventLoop, resolver: Resolver,
        clock: Clock, logger: Logger, onMessage: @escaping @Sendable ([UInt8]) -> Void,
        onGap: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        let listener = RedisLinkConfiguration.Listener(channel: channel, onMessage: onMessage, onGap: onGap)
        owner = try RedisLinkOwner(
            url, options: options, listener: listener, loop: loop, resolver: resolver, clock: clock, logger: logger)
    }

    /// How it stands; `connected` means that the subscription stands too.
    package var status: RedisStatus { owner.board.status }

    /// Starts to connect, and to reconnect for ever.
    package func start() { owner.start() }

    /// Ends the connection; a message that is being handed over may still come.
    ///
    /// Does not wait.
    package func shutdown() { owner.shutdown() }

    /// Waits until the subscription stands, at most until the attempt under way has failed.
    package func settle() async throws(StoreError) { try await owner.settle() }
}

extension RedisOptions {
    /// For a connection that is silent for long: a dead one is noticed within 2 s.
    package static var listening: RedisOptions {
        var options = RedisOptions()
        options.heartbeatInterval = .seconds(1)
        options.commandTimeout = .milliseconds(900)
        options.clientName = "martlet-listener"
        return options
    }
}
