internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP

/// The trailers of a request: forwarded like fields of a head, unless the gateway gives the field a meaning.
struct RequestTrailers: ~Copyable {
    /// Lower-case names announced in `Trailer`, comma-separated.
    var announced = ByteBuffer()
    /// The lines that will be forwarded.
    var forwarded = ByteBuffer()
    /// The lines of a stream, as received.
    var received = ByteBuffer()

    @inline(__always)
    mutating func begin() {
        announced.removeAll()
        forwarded.removeAll()
        received.removeAll()
    }

    /// Writes the `Trailer` field with the names that will be forwarded, and stores them.
    ///
    /// - Parameter head: lent `inout`, though it is only read: one that a function borrows is copied for it.
    @inline(never)
    mutating func announce(
        _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, _ rules: RequestFieldRules,
        _ snapshot: Snapshot, _ route: Int, into out: inout ByteBuffer
    ) {
        for index in 0..<head.fields.count where head.fields[index].known == .trailer {
            let list = unsafe bytes[head.fields[index].value]
            var start = 0
            while start < list.count {
                var end = start
                while end < list.count, unsafe list[end] != UInt8(ascii: ",") { end &+= 1 }
                unsafe announce(UnsafeBufferPointer(rebasing: list[start..<end]), rules, snapshot, route, into: &out)
                start = end &+ 1
            }
        }
        if !announced.isEmpty { out.append("\r\n") }
    }

    /// Writes one name of the list, if its trailer will be forwarded.
    private mutating func announce(
        _ name: UnsafeBufferPointer<UInt8>, _ rules: RequestFieldRules, _ snapshot: Snapshot, _ route: Int,
        into out: inout ByteBuffer
    ) {
        // As a line of a trailer section, so that it is parsed as the trailer itself will be.
        var line = ByteBuffer()
        for index in name.indices where unsafe name[index] != 0x20 && name[index] != 0x09 {
            line.append(unsafe name[index])
        }
        let end = line.count
        line.append(":\r\n")
        var start = 0
        guard let field = unsafe TrailerLines.next(line.bytes.span, from: &start), field.name.end == end,
            unsafe rules.passesAsTrailer(field, line.bytes, snapshot, route)
        else { return }
        out.append(announced.isEmpty ? "Trailer: " : ", ")
        unsafe out.append(line.bytes[field.name])
        unsafe announced.append(lowercasing: line.bytes[field.name])
        announced.append(",")
    }

    /// Stores a trailer for forwarding, if it is allowed and was announced, or needs no announcement.
    mutating func collect(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ rules: ExchangeHeaderRules, _ snapshot: Snapshot,
        announcedOnly: Bool
    ) {
        guard unsafe rules.passesAsTrailer(field, bytes, snapshot),
            unsafe !announcedOnly || announces(bytes[field.name])
        else { return }
        unsafe forwarded.append(bytes[field.name])
        forwarded.append(": ")
        unsafe forwarded.append(bytes[field.value])
        forwarded.append("\r\n")
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collect(
        lines: UnsafeBufferPointer<UInt8>, _ rules: ExchangeHeaderRules, _ snapshot: Snapshot, announcedOnly: Bool
    ) {
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe collect(field, lines, rules, snapshot, announcedOnly: announcedOnly)
        }
    }

    private func announces(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let announced = unsafe announced.bytes
        return unsafe announced.split(separator: UInt8(ascii: ",")).contains { part in
            unsafe part.count == name.count
                && zip(part, name).allSatisfy { $0 == ($1 >= 0x41 && $1 <= 0x5A ? $1 | 0x20 : $1) }
        }
    }
}

/// What decides about the trailers of a request, which come later than its head.
struct ExchangeHeaderRules {
    /// Index of the route; −1 while no head was forwarded.
    private(set) var route: Int32 = -1
    private(set) var rules: RequestFieldRules = []
    /// The configuration of `route`, after a reload.
    private(set) var formerSnapshot: Snapshot?
    private var hasFormerSnapshot = false

    /// Stores the rules that the head was forwarded with.
    @inline(__always)
    mutating func begin(route: Int, rules: RequestFieldRules) {
        self.route = Int32(truncatingIfNeeded: route)
        self.rules = rules
    }

    /// Retains the configuration that the exchange started with.
    mutating func retain(former snapshot: Snapshot) {
        guard !hasFormerSnapshot else { return }
        formerSnapshot = snapshot
        hasFormerSnapshot = true
    }

    @inline(__always)
    mutating func end() {
        route = -1
        if hasFormerSnapshot { dropFormerSnapshot() }
    }

    // Not in `end`: few exchanges release one.
    @inline(never)
    private mutating func dropFormerSnapshot() {
        formerSnapshot = nil
        hasFormerSnapshot = false
    }

    /// Whether a field is allowed as a trailer, by the configuration that the exchange started with; none is where no
    /// head was forwarded.
    ///
    /// - Parameter snapshot: the current configuration.
    func passesAsTrailer(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot) -> Bool {
        guard route >= 0 else { return false }
        return unsafe rules.passesAsTrailer(field, bytes, formerSnapshot ?? snapshot, Int(route))
    }
}

extension RequestFieldRules {
    /// Whether a field is allowed as a trailer: it is no known field in any spelling, and it would be forwarded in a
    /// head.
    func passesAsTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot, _ route: Int
    ) -> Bool {
        guard field.known == .other, unsafe KnownField.lookAlike(bytes.span, field.name) == .other else { return false }
        var filter = RequestFieldFilter(self)
        return unsafe filter.forwardsAlone(field, bytes, snapshot, route)
    }
}
