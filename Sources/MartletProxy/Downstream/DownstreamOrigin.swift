internal import MartletDecisions
internal import MartletResponder

/// Where a downstream connection comes from, and what its listener says about it.
struct DownstreamOrigin {
    /// The listener it was accepted from.
    var listener: Int32 = -1
    var rules = ListenerRules()
    /// The listener's own handler, which responds before anything is routed.
    var handler: ListenerHandler?
    var address = DownstreamAddress()
    /// The socket's peer, as it was counted on accept; differs from `address` behind a PROXY protocol header.
    var peerBytes: [UInt8] = []
    /// How it was counted on accept.
    var admission = ConnectionLimit.Admission.counted

}

/// A client's address, with the texts for headers and logs made once per connection.
struct DownstreamAddress {
    /// 16 bytes, IPv4 mapped; zeros for a Unix socket.
    var bytes: [UInt8] = []
    /// Without port or brackets; `unix` for a Unix socket.
    var text = AddressText()
    /// Why the heads of its requests are read before they are routed; none for most.
    var marks: Marks = []
    /// The client's own port; 0 where it is unknown.
    var port: UInt16 = 0
    /// The peer connected through a Unix socket.
    var isUnix = false
    /// It was logged that its forwarding fields are ignored.
    var isReported = false

    /// What is read of the heads of its requests.
    struct Marks: OptionSet {
        let rawValue: UInt8

        /// What the peer says about the client, as it is in `trusted_proxies`.
        static let trusted = Marks(rawValue: 1)
        /// What access lines have of them.
        static let noted = Marks(rawValue: 2)
    }

    init(
        bytes: [UInt8] = [], text: AddressText = AddressText(), isTrusted: Bool = false, isNoted: Bool = false,
        port: UInt16 = 0, isUnix: Bool = false
    ) {
        self.bytes = bytes
        self.text = text
        marks = isTrusted ? .trusted : []
        if isNoted { marks.insert(.noted) }
        self.port = port
        self.isUnix = isUnix
    }

    /// Whether the peer is in `trusted_proxies`.
    @inline(__always)
    var isTrusted: Bool {
        get { marks.contains(.trusted) }
        set { if newValue { marks.insert(.trusted) } else { marks.remove(.trusted) } }
    }

    /// Whether access lines have something of the heads of its requests.
    var isNoted: Bool {
        get { marks.contains(.noted) }
        set { if newValue { marks.insert(.noted) } else { marks.remove(.noted) } }
    }
}
