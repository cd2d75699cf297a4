internal import MartletDecisions
internal import MartletResponder

/// The logs of one loop, and the IDs by which they name requests.
struct LoopLogs: ~Copyable {
    var access: AccessLogWriter
    let debug: DebugLog
    var requestIDs: RequestIDs
    /// Watches finished requests; `nil` while there is no reader of events.
    private(set) var watcher: (any RequestWatching)?
    /// Whether there is one; kept beside it, because nothing retains a flag.
    private(set) var isWatched = false

    init(
        access sink: any AccessLogging, _ plan: AccessPlan = .standard, debug: DebugLog, requestIDPrefix: UInt64
    ) {
        access = AccessLogWriter(sink, plan)
        self.debug = debug
        requestIDs = RequestIDs(prefix: requestIDPrefix)
    }

    /// Starts or stops streaming finished requests to a watcher.
    mutating func watch(_ watcher: (any RequestWatching)?) {
        self.watcher = watcher
        isWatched = watcher != nil
    }
}
