internal import MartletCore
internal import MartletIO

/// A connection for questions to a sentinel, and one for its announcements.
final class SentinelConnections {
    enum Event {
        case ready
        case down(StoreError)
        /// The sentinel has announced another master of some name.
        case masterAnnounced
        case stopped
    }

    private let questions: RedisConnection
    private let announcements: RedisConnection

    init(
        _ address: RedisURL.Address, on loop: ServiceLoop, _ configuration: RedisRouterConfiguration,
        _ onEvent: @escaping (Event) -> Void
    ) {
        questions = RedisConnection(to: address, on: loop, configuration.sentinel()) { event in
            switch event {
            case .ready: onEvent(.ready)
            case .down(let error): onEvent(.down(error))
            case .message: break
            case .stopped: onEvent(.stopped)
            }
        }
        announcements = RedisConnection(to: address, on: loop, configuration.sentinel(channel: "+switch-master")) {
            // After a subscription announcements may have been missed.
            switch $0 {
            case .ready, .message: onEvent(.masterAnnounced)
            case .down, .stopped: break
            }
        }
    }

    /// Whether questions are accepted.
    var isReady: Bool { questions.isReady }

    func start() {
        questions.start()
        announcements.start()
    }

    func close() {
        questions.stop()
        announcements.stop()
    }

    func ask(
        _ arguments: [[UInt8]], deadline: MonotonicTime,
        _ completion: @escaping (RedisConnection.CommandResult) -> Void
    ) {
        questions.submit(arguments, expecting: .anything, deadline: deadline, completion)
    }
}
