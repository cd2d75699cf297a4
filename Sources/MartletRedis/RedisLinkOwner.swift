internal import MartletCore
internal import MartletIO
internal import MartletTLS

/// What a link is made of; immutable.
struct RedisLinkConfiguration: Sendable, CustomStringConvertible {
    struct Security: Sendable {
        var context: TLSClientContext
        var serverName: String
    }

    /// Who is told what is heard on a channel; called on the link's loop.
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
    /// The link itself, for what comes from other threads.
    var handle: LoopBound<RedisLink>
    /// The URL without what is secret.
    var description: String
}

/// A link as other threads hold it: starts it, ends it, and sees how it stands.
struct RedisLinkOwner: Sendable {
    let configuration: RedisLinkConfiguration
    let board: RedisBoard
    let handle: LoopBound<RedisLink>

    init(
        _ url: RedisURL, options: RedisOptions, listener: RedisLinkConfiguration.Listener?, loop: EventLoop,
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
        configuration = RedisLinkConfiguration(
            address: url.address, security: try RedisLinkOwner.security(url), settings: settings, listener: listener,
            commandTimeout: options.commandTimeout, connectTimeout: options.connectTimeout,
            heartbeatInterval: options.heartbeatInterval, resolver: resolver, clock: clock, logger: logger,
            handle: handle, description: url.description)
        board = RedisBoard(maximumInFlight: options.maximumInFlight, now: clock.monotonicTime)
    }

    private static func security(_ url: RedisURL) throws(StoreError) -> RedisLinkConfiguration.Security? {
        guard case .tcp(let host, _) = url.address, let context = try url.security?.makeContext() else { return nil }
        return RedisLinkConfiguration.Security(context: context, serverName: host)
    }

    func start() {
        let (handle, configuration, board) = (handle, configuration, board)
        _ = handle.loop.execute {
            guard handle.value == nil, board.status.state != .stopped else { return }
            let link = RedisLink(loop: handle.loop, configuration: configuration, board: board)
            handle.value = link
            link.start()
        }
    }

    func shutdown() {
        board.stopped(at: configuration.clock.monotonicTime)
        let handle = handle
        _ = handle.loop.execute {
            handle.value?.stop()
            handle.value = nil
        }
    }

    /// Waits until the connection stands, at most until the attempt under way has failed.
    func settle() async throws(StoreError) {
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
}
