/// What an event or a timer belongs to, in the 64 bits that the kernel returns: its kind (8 bits), and a handle with a
/// generation of 24 bits, or the ID of a listener.
struct EventToken {
    enum Kind: UInt8 { case mailbox, listener, downstream, upstream, delayProbe }

    private static let handleBits: UInt64 = 0x00FF_FFFF_FFFF_FFFF

    let raw: UInt64

    @inline(__always)
    init(raw: UInt64) { self.raw = raw }

    @inline(__always)
    private init(_ kind: Kind, _ bits: UInt64) { raw = UInt64(kind.rawValue) << 56 | bits & EventToken.handleBits }

    @inline(__always)
    init(downstream handle: Handle<DownstreamConnection>) { self.init(.downstream, handle.raw) }

    @inline(__always)
    init(upstream handle: Handle<UpstreamConnection>) { self.init(.upstream, handle.raw) }

    init(listener id: Int32) { self.init(.listener, UInt64(UInt32(bitPattern: id))) }

    static var mailbox: EventToken { EventToken(.mailbox, 0) }

    static var delayProbe: EventToken { EventToken(.delayProbe, 0) }

    @inline(__always)
    var kind: Kind? { Kind(rawValue: UInt8(truncatingIfNeeded: raw >> 56)) }

    /// The connection, where that is the token's kind.
    @inline(__always)
    var downstream: Handle<DownstreamConnection> { Handle(raw: raw & EventToken.handleBits) }

    /// The connection, where that is the token's kind.
    @inline(__always)
    var upstream: Handle<UpstreamConnection> { Handle(raw: raw & EventToken.handleBits) }

    /// The ID of the listener, where that is the token's kind.
    var listener: Int32 { Int32(truncatingIfNeeded: raw) }
}
