/// The logs of one loop, and the IDs by which they name requests.
struct LoopLogs: ~Copyable {
    var access: AccessLogWriter
    let debug: DebugLog
    var requestIDs: RequestIDs

    init(access sink: any AccessLogging, debug: DebugLog, requestIDPrefix: UInt64) {
        access = AccessLogWriter(sink)
        self.debug = debug
        requestIDs = RequestIDs(prefix: requestIDPrefix)
    }
}
