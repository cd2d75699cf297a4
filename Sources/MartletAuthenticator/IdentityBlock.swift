internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// The header block of one request, with the names of its caller behind it.
struct IdentityBlock: ~Copyable {
    private var buffer = ByteBuffer(capacity: 4 * 1024)
    /// The headers that did not fit into it.
    private(set) var dropped: [DroppedHeader] = []

    /// Valid until the next change.
    var bytes: UnsafeBufferPointer<UInt8> { unsafe buffer.bytes }
    var count: Int32 { Int32(buffer.count) }

    mutating func removeAll() { buffer.removeAll() }

    /// Writes the headers of a request.
    /// - Returns: until when they may be used again, in Unix seconds.
    mutating func writeHeaders(
        of principal: Principal?, _ route: Int, _ rules: AuthenticationRules, at time: LoopTime
    ) -> Int64 {
        buffer.removeAll()
        let headers = rules.writeIdentityHeaders(of: principal, route: route, at: time.unixTime, into: &buffer)
        dropped = headers.dropped
        return headers.expires
    }

    /// Writes the names of a caller behind the headers.
    mutating func writeNames(of principal: Principal, _ rules: AuthenticationRules) {
        rules.names.write(subject: principal.subject, sessionID: principal.sessionID, into: &buffer)
    }

    /// Writes the names of a caller who was rejected.
    mutating func writeNames(of caller: RejectedCaller, _ rules: AuthenticationRules) {
        rules.names.write(subject: caller.subject, sessionID: caller.sessionID, into: &buffer)
    }
}
