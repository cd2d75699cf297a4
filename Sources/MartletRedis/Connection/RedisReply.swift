/// The reply to one command.
package enum RedisReply: Sendable, Equatable {
    /// A null reply.
    case nothing
    case integer(Int64)
    case bytes([UInt8])
    case status(String)
    /// An error that concerns the command alone, by its kind, such as `WRONGTYPE`.
    case error(kind: String)
    /// An error of a cluster: another node has the key.
    case redirect(RedisRedirect)
    /// Elements may be nested arrays or `nothing`.
    case array([RedisReply])
    /// A reply of more bytes than the limit, which was not kept.
    case tooLarge
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
        case (.anything, _), (_, .error), (_, .redirect), (_, .tooLarge): true
        case (.value, .bytes), (.value, .nothing): true
        case (.acknowledgement, .status("OK")), (.acknowledgementOrNothing, .status("OK")): true
        case (.acknowledgementOrNothing, .nothing): true
        case (.integer, .integer), (.array, .array): true
        default: false
        }
    }
}

/// `MOVED` and `ASK`: a node of a cluster names the node that has a key.
package struct RedisRedirect: Sendable, Hashable {
    /// Whether only this command goes there, because the key is being moved.
    package let isTemporary: Bool
    package let slot: UInt16
    /// `nil` for the host that was asked.
    package let host: String?
    package let port: UInt16

    package init(isTemporary: Bool, slot: UInt16, host: String?, port: UInt16) {
        (self.isTemporary, self.slot, self.host, self.port) = (isTemporary, slot, host, port)
    }

    /// Parses `MOVED 3999 127.0.0.1:6381`; `nil` for any other error.
    init?(_ text: [UInt8]) {
        let words = text.split(separator: 0x20, omittingEmptySubsequences: false)
        guard words.count == 3, text.count <= 300 else { return nil }
        switch String(decoding: words[0], as: UTF8.self) {
        case "MOVED": isTemporary = false
        case "ASK": isTemporary = true
        default: return nil
        }
        guard let slot = UInt16(digits: words[1]), slot < HashSlot.count,
            let colon = words[2].lastIndex(of: 0x3A), let port = UInt16(digits: words[2][(colon + 1)...]), port > 0,
            let host = String(validating: words[2][..<colon], as: UTF8.self), RedisRedirect.isHost(host)
        else { return nil }
        self.slot = slot
        // Before version 7, and without an announced name, an empty host or `?` is the one that was asked.
        self.host = host.isEmpty || host == "?" ? nil : host
        self.port = port
    }

    /// Whether a server may name this host.
    static func isHost(_ host: String) -> Bool {
        host.utf8.count <= 253 && (host == "?" || host.utf8.allSatisfy(RedisURLParts.isHostByte))
    }

    /// The node, as seen by a client of another one.
    package func address(from asked: RedisURL.Address) -> RedisURL.Address? {
        if let host { return .tcp(host: host, port: port) }
        guard case .tcp(let host, _) = asked else { return nil }
        return .tcp(host: host, port: port)
    }
}

extension UInt16 {
    /// A number in decimal digits only.
    init?(digits: some Collection<UInt8>) {
        guard (1...5).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let value = UInt16(String(decoding: digits, as: UTF8.self))
        else { return nil }
        self = value
    }
}
