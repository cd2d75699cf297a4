/// An acknowledged write, as it is written again to a master that may not have it.
///
/// Replication is asynchronous: what a master acknowledged right before it was lost may be unknown to the next one.
package struct RedisReplay: Sendable {
    /// What a replay does, which decides how long it is kept and in which order it is sent.
    package enum Kind: Sendable {
        /// Writes what is absent, or what is as it was before the write.
        case write
        /// Removes what has ended, and what another instance might write again.
        case end
        /// The same of what was not found when it was to be ended. Any client can cause these, so they have a bound of
        /// their own.
        case endOfAbsent
    }

    let kind: Kind
    let command: RedisCommand
    /// Identifies what it writes or ends; `nil` for what is never ended by its number.
    let number: UInt64?

    /// - Parameters:
    ///   - script: must change nothing if the master has the write, or something newer.
    ///   - number: that of the session.
    package init(_ kind: Kind, _ script: RedisScript, keys: [[UInt8]], arguments: [[UInt8]], number: UInt64?) {
        let head = [Array("EVAL".utf8), script.source, Array(String(keys.count).utf8)]
        self.init(
            kind, RedisCommand(head + keys + arguments, key: keys.first, traits: [.isRepeatable, .hasManyKeys]),
            number: number)
    }

    init(_ kind: Kind, _ command: RedisCommand, number: UInt64? = nil) {
        self.kind = kind
        self.command = command
        self.number = number
    }
}
