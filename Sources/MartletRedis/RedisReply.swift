/// What Redis answered to one command.
package enum RedisReply: Sendable, Equatable {
    /// There is no such value.
    case nothing
    case integer(Int64)
    case bytes([UInt8])
    case status(String)
    /// Redis refused the command for a reason that concerns the command alone; the kind, such as `WRONGTYPE`.
    case error(kind: String)
    /// Elements may be arrays themselves, and `nothing`.
    case array([RedisReply])
}

/// Which replies a command can have; any other means that the connection can no longer be trusted.
package enum RedisExpectation: Sendable {
    case anything
    /// A value or nothing.
    case value
    /// `OK`.
    case acknowledgement
    /// `OK`, or nothing because a condition did not hold.
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
