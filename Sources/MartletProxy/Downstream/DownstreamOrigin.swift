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
    /// Whether the peer is in `trusted_proxies`.
    var isTrusted = false
    /// The client's own port; 0 where it is unknown.
    var port: UInt16 = 0
    /// The peer connected through a Unix socket.
    var isUnix = false
    /// It was logged that its forwarding fields are ignored.
    var isReported = false
}
