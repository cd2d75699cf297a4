internal import MartletCore

/// What commands fail for although a server is connected.
///
/// A server that says what is wrong with it is believed at the first time, for each kind of command by itself: reads may
/// succeed while it refuses writes. Other errors count once several commands in a row have failed: nodes that redirect
/// to each other, replies that do not come in time.
struct CommandFailures {
    enum Change {
        case failing(StoreError, OutageLog.Line)
        case succeeding
    }

    private struct Failure {
        var error: StoreError
        var time: MonotonicTime
    }

    private static let shortest = 5
    private static let shortestTime = Duration.seconds(1)
    /// What one kind of command failed for this long ago is over for all kinds when one of them succeeds.
    private static let memory = Duration.seconds(10)
    /// Kinds are the commands and scripts of the gateway, so there are fewer.
    private static let maximumKinds = 128

    private var kinds: [RedisCommand.Kind: Failure] = [:]
    /// The error of the last command, once several have failed and none has succeeded between them.
    private var series: StoreError?
    private var count = 0
    private var start = MonotonicTime(nanoseconds: 0)
    private var log = OutageLog()

    /// Why commands fail; `nil` if none does.
    var failure: StoreError? {
        // The one that failed last says most about now.
        kinds.values.max { $0.time < $1.time }?.error ?? series
    }

    /// A command has ended.
    /// - Parameters:
    ///   - kind: what it is, which is asked for only where it matters.
    ///   - error: `nil` if it was executed.
    mutating func ended(
        _ kind: @autoclosure () -> RedisCommand.Kind, _ error: StoreError?, at now: MonotonicTime
    ) -> Change? {
        guard let error else {
            count = 0
            guard failure != nil else { return nil }
            series = nil
            succeeded(kind(), at: now)
            return failure == nil ? over(at: now) : nil
        }
        // No server has had them.
        guard error.code != .redisOverloaded, error.code != .redisStopped, error.code != .redisCommandInvalid else {
            return nil
        }
        if RedisErrorReply.saysState(error) {
            let kind = kind()
            if kinds[kind] != nil || kinds.count < Self.maximumKinds { kinds[kind] = Failure(error: error, time: now) }
        } else {
            if count == 0 { start = now }
            count = min(count + 1, Self.shortest)
            if count == Self.shortest, now.since(start) >= Self.shortestTime { series = error }
        }
        guard let failure else { return nil }
        return log.failed("\(failure.code)", at: now).map { .failing(failure, $0) }
    }

    /// A server has accepted a connection where none did: what commands failed for without one is over.
    mutating func connected(at now: MonotonicTime) -> Change? {
        (series, count) = (nil, 0)
        return forget(RedisErrorReply.beforeConnecting, at: now)
    }

    /// Keys have another master.
    mutating func moved(at now: MonotonicTime) -> Change? { forget(RedisErrorReply.ofOneServer, at: now) }

    private mutating func forget(_ codes: Set<ErrorCode>, at now: MonotonicTime) -> Change? {
        let wasFailing = log.isActive
        kinds = kinds.filter { !codes.contains($0.value.error.code) }
        return wasFailing && failure == nil ? over(at: now) : nil
    }

    private mutating func succeeded(_ kind: RedisCommand.Kind, at now: MonotonicTime) {
        // Of a cluster, one node has some keys, and redirects for all others.
        guard let failed = kinds[kind], failed.error.code != .redisMoved else { return }
        kinds[kind] = nil
        // Each command needs its own right.
        guard failed.error.code != .redisNotPermitted else { return }
        kinds = kinds.filter {
            $0.value.error.code != failed.error.code || now.since($0.value.time) < Self.memory
        }
    }

    private mutating func over(at now: MonotonicTime) -> Change? {
        log.succeeded(at: now).map { _ in .succeeding }
    }
}
