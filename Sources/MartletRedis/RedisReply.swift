/// The reply to one command.
package enum RedisReply: Sendable, Equatable {
    /// A null reply.
    case nothing
    case integer(Int64)
    case bytes([UInt8])
    case status(String)
    /// An error that concerns the command alone, by its kind, such as `WRONGTYPE`.
    case error(kind: String)
    /// Elements may be nested arrays or `nothing`.
    case array([RedisReply])
}

/// The valid replies of a command; any other closes the connection, because replies may be out of step.
package enum RedisExpectation: Sendable {
    case anything
    /// A value or null.
    case value
    /// `OK`.
    case acknowledgement
    /// `OK`, or null because a condition did not hold.
    case acknowledgementOrNothing
    case integer
    case array

    func allows(_ reply: RedisReply) -> Bool {
        switch (self, reply) {
        case (.anything, _), (_, .error): true
        case (.value, .bytes), (.value, .nothing): true
        case (.acknowledgement, .status("OK")), (.acknowledgementOrNothing, .status("OK")): true
        case (.acknowledgementOrNothing, .nothing): true
        case (.integer, .integer), (.array, .array): true
        default: false
        }
    }
}
