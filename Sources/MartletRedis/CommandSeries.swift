internal import MartletCore

/// Whether commands fail one after the other although a server is connected, such as for nodes that redirect to each
/// other or a cluster that is down.
struct CommandSeries {
    enum Change {
        case failing(StoreError)
        case succeeding
    }

    private static let shortest = 5
    private static let shortestTime = Duration.seconds(1)

    /// The error of the last command, once several have failed and none has succeeded between them.
    private(set) var failure: StoreError?
    private var count = 0
    private var start = MonotonicTime(nanoseconds: 0)

    /// - Parameter error: `nil` if the server has executed or rejected the command.
    mutating func ended(_ error: StoreError?, at now: MonotonicTime) -> Change? {
        guard let error else {
            let wasFailing = failure != nil
            (failure, count) = (nil, 0)
            return wasFailing ? .succeeding : nil
        }
        // No server has had them.
        guard error.code != .redisOverloaded, error.code != .redisStopped, error.code != .redisCommandInvalid else {
            return nil
        }
        if count == 0 { start = now }
        count = min(count + 1, CommandSeries.shortest)
        let wasFailing = failure != nil
        if count == CommandSeries.shortest, now.since(start) >= CommandSeries.shortestTime { failure = error }
        return failure != nil && !wasFailing ? .failing(error) : nil
    }
}
