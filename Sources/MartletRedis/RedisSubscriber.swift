package import MartletCore
internal import MartletIO

/// A subscription to one channel on its own connection, with automatic reconnection.
///
/// Redis does not buffer messages for disconnected subscribers: messages published in the meantime are lost. `onGap` is
/// called whenever that may have happened.
package final class RedisSubscriber: Sendable {
    private let client: RedisClient
    private let recorder: RedisStatusRecorder
    private let handle: LoopBound<RedisSubscription>
    private let make: @Sendable (RedisRouterConfiguration) -> RedisSubscription

    /// Creates a subscriber, which connects after `start()`.
    ///
    /// Both callbacks run on the event loop and must not block. `onGap` is called after every subscription, including
    /// the first, and before its messages.
    /// - Parameters:
    ///   - client: knows the servers; the subscription has a connection of its own.
    ///   - channel: the full name of the channel; a message larger than 16 KiB closes the connection.
    ///   - onMessage: receives the payload of each message.
    ///   - onGap: called when messages may have been missed.
    package init(
        _ client: RedisClient, options: RedisOptions = .listening, channel: String,
        onMessage: @escaping @Sendable ([UInt8]) -> Void, onGap: @escaping @Sendable () -> Void
    ) {
        self.client = client
        let recorder = RedisStatusRecorder(maximumInFlight: 0, now: client.clock.monotonicTime)
        self.recorder = recorder
        let loop = client.handle.loop
        handle = LoopBound(loop)
        make = { configuration in
            RedisSubscription(
                configuration, options, channel: channel, on: loop, recorder, onMessage: onMessage, onGap: onGap)
        }
    }

    /// The status of the connection; `connected` means subscribed.
    package var status: RedisStatus { recorder.status }

    /// Starts connecting, and reconnects until `shutdown()`.
    package func start() {
        let (client, handle, recorder, make) = (client.handle, handle, recorder, make)
        _ = handle.loop.execute {
            guard handle.value == nil, recorder.status.state != .stopped, let router = client.value else { return }
            let subscription = make(router.configuration)
            handle.value = subscription
            router.add(subscription)
        }
    }

    /// Closes the connection without waiting; a message being delivered may still arrive.
    package func shutdown() {
        recorder.stopped(at: client.clock.monotonicTime)
        let (client, handle) = (client.handle, handle)
        _ = handle.loop.execute {
            guard let subscription = handle.value else { return }
            handle.value = nil
            guard let router = client.value else { return subscription.stop() }
            router.remove(subscription)
        }
    }

    /// Waits until subscribed.
    /// - Throws: the error of the current connection attempt if it fails; `redis.connect_timeout` if none ends in time.
    package func waitUntilConnected() async throws(StoreError) {
        try await handle.waitUntilConnected { $0.whenConnected($1) }
    }
}

/// A subscription on the event loop: one connection to a node, and another one when that is lost.
final class RedisSubscription {
    private let configuration: RedisRouterConfiguration
    private let connectionConfiguration: RedisConnectionConfiguration
    private let loop: ServiceLoop
    private let recorder: RedisStatusRecorder
    private let onMessage: @Sendable ([UInt8]) -> Void
    private let onGap: @Sendable () -> Void
    private var connection: RedisConnection?
    private var node: RedisURL.Address?
    private var isSubscribed = false
    private var isStopped = false
    private let waiters: ConnectWaiters

    init(
        _ configuration: RedisRouterConfiguration, _ options: RedisOptions, channel: String, on loop: ServiceLoop,
        _ recorder: RedisStatusRecorder, onMessage: @escaping @Sendable ([UInt8]) -> Void,
        onGap: @escaping @Sendable () -> Void
    ) {
        self.configuration = configuration
        connectionConfiguration = configuration.connection(options, channel: channel)
        self.loop = loop
        self.recorder = recorder
        self.onMessage = onMessage
        self.onGap = onGap
        waiters = ConnectWaiters(on: loop, connectTimeout: connectionConfiguration.connectTimeout)
    }

    /// Subscribes on a node, unless there is a working subscription that may stay.
    func move(to wanted: RedisURL.Address?) {
        guard !isStopped, let wanted, wanted != node else { return }
        // In a cluster every node gets the messages.
        if case .cluster = configuration.url.layout, isSubscribed { return }
        connection?.stop()
        isSubscribed = false
        node = wanted
        let next = RedisConnection(to: wanted, on: loop, connectionConfiguration) { [weak self] event in
            guard let self, node == wanted else { return }
            serve(event)
        }
        connection = next
        next.start()
    }

    func whenConnected(_ completion: @escaping ConnectWaiters.Completion) {
        if isStopped { return completion(.stopped) }
        if isSubscribed { return completion(nil) }
        waiters.add(completion)
    }

    func stop() {
        guard !isStopped else { return }
        isStopped = true
        connection?.stop()
        connection = nil
        recorder.stopped(at: configuration.clock.monotonicTime)
        waiters.resume(.stopped)
    }

    private func serve(_ event: RedisConnection.Event) {
        guard !isStopped else { return }
        let now = configuration.clock.monotonicTime
        switch event {
        case .ready:
            isSubscribed = true
            _ = recorder.connected(at: now)
            configuration.logger.info(
                "redis connected", ("address", node?.description ?? ""), ("purpose", "revocations"))
            onGap()
            waiters.resume(nil)
        case .down(let error):
            isSubscribed = false
            if let line = recorder.down(error, at: now) {
                configuration.logger.warning(
                    "redis unavailable",
                    [("code", "\(error.code)"), ("reason", error.message), ("purpose", "revocations")] + line.fields)
            }
            waiters.resume(error)
        case .message(let payload): onMessage(payload)
        case .stopped: stop()
        }
    }
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
