internal import MartletCore
internal import MartletIO
internal import MartletTLS

/// The configuration of a connection.
struct RedisConnectionConfiguration: Sendable, CustomStringConvertible {
    struct Security: Sendable {
        var context: TLSClientContext
        var serverName: String
    }

    /// The callbacks of a subscription, called on the event loop.
    struct Listener: Sendable {
        var channel: String
        var onMessage: @Sendable ([UInt8]) -> Void
        var onGap: @Sendable () -> Void
    }

    var address: RedisURL.Address
    var security: Security?
    var settings: RedisConnectionState.Settings
    var listener: Listener?
    var commandTimeout: Duration
    var connectTimeout: Duration
    var heartbeatInterval: Duration
    var resolver: Resolver
    var clock: Clock
    var logger: Logger
    /// The connection itself, for callbacks from other threads.
    var handle: LoopBound<RedisConnection>
    /// The URL without credentials.
    var description: String
}

/// A thread-safe handle of a connection: starts it, stops it and reads its status.
struct RedisConnectionOwner: Sendable {
    let configuration: RedisConnectionConfiguration
    let recorder: RedisStatusRecorder
    let handle: LoopBound<RedisConnection>

    init(
        _ url: RedisURL, options: RedisOptions, listener: RedisConnectionConfiguration.Listener?, loop: ServiceLoop,
        resolver: Resolver, clock: Clock, logger: Logger
    ) throws(StoreError) {
        var settings = RedisConnectionState.Settings()
        settings.user = url.user
        settings.password = url.password
        settings.database = url.database
        settings.clientName = options.clientName
        settings.maximumInFlight = options.maximumInFlight
        settings.channel = listener?.channel
        handle = LoopBound(loop)
        configuration = RedisConnectionConfiguration(
            address: url.address, security: try RedisConnectionOwner.security(url), settings: settings,
            listener: listener, commandTimeout: options.commandTimeout, connectTimeout: options.connectTimeout,
            heartbeatInterval: options.heartbeatInterval, resolver: resolver, clock: clock, logger: logger,
            handle: handle, description: url.description)
        recorder = RedisStatusRecorder(maximumInFlight: options.maximumInFlight, now: clock.monotonicTime)
    }

    private static func security(_ url: RedisURL) throws(StoreError) -> RedisConnectionConfiguration.Security? {
        guard case .tcp(let host, _) = url.address, let context = try url.security?.makeContext() else { return nil }
        return RedisConnectionConfiguration.Security(context: context, serverName: host)
    }

    func start() {
        let (handle, configuration, recorder) = (handle, configuration, recorder)
        _ = handle.loop.execute {
            guard handle.value == nil, recorder.status.state != .stopped else { return }
            let connection = RedisConnection(loop: handle.loop, configuration: configuration, recorder: recorder)
            handle.value = connection
            connection.start()
        }
    }

    func shutdown() {
        recorder.stopped(at: configuration.clock.monotonicTime)
        let handle = handle
        _ = handle.loop.execute {
            handle.value?.stop()
            handle.value = nil
        }
    }

    /// Waits until connected, or until the current attempt fails.
    func waitUntilConnected() async throws(StoreError) {
        let handle = handle
        let failure: StoreError? = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                guard let connection = handle.value else { return continuation.resume(returning: .stopped) }
                connection.whenConnected { continuation.resume(returning: $0) }
            }
            if !accepted { continuation.resume(returning: .stopped) }
        }
        if let failure { throw failure }
    }
}
