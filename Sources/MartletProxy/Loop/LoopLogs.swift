/// The logs of one loop, and the IDs by which they name requests.
struct LoopLogs: ~Copyable {
    var access: AccessLogWriter
    let debug: DebugLog
    var requestIDs: RequestIDs

    init(
        access sink: any AccessLogging, _ settings: AccessLogSettings? = nil, debug: DebugLog, requestIDPrefix: UInt64
    ) {
        access = AccessLogWriter(sink, settings)
        self.debug = debug
        requestIDs = RequestIDs(prefix: requestIDPrefix)
    }
}
