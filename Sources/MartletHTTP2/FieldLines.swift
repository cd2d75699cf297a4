internal import CNghttp2
internal import MartletCore
internal import MartletHTTP

/// The fields of an outgoing head or trailer section for nghttp2: pointers into the text.
@safe struct FieldLines: ~Copyable {
    /// The text is not a valid HTTP/1 head; nothing is sent.
    struct Malformed: Error {}

    /// The fields, for nghttp2; valid until the next `begin` or `add`.
    private(set) var list: UnsafeMutablePointer<nghttp2_nv>
    private(set) var count = 0
    private var capacity = 32
    /// Fields with the name `x-request-id` so far.
    private var requestIDs = 0

    init() { unsafe list = .allocate(capacity: 32) }

    deinit { unsafe list.deallocate() }

    /// Empties the list.
    ///
    /// Values that are added must stay valid until it was submitted.
    mutating func begin() { count = 0 }

    mutating func add(_ name: StaticString, _ value: UnsafeBufferPointer<UInt8>) {
        let bytes = unsafe UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        // Literals are lower-case already and live forever.
        unsafe append(bytes, value, flags: NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
    }

    mutating func add(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        // nghttp2 copies both, and makes the name lower case.
        let isNeverIndexed = unsafe FieldLines.isNeverIndexed(name)
        unsafe append(name, value, flags: isNeverIndexed ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : 0)
    }

    @inline(__always)
    private mutating func append(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, flags: UInt32
    ) {
        if count == capacity { grow() }
        unsafe (list + count).initialize(
            to: nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name.baseAddress),
                value: UnsafeMutablePointer(mutating: value.baseAddress), namelen: name.count, valuelen: value.count,
                flags: UInt8(truncatingIfNeeded: flags)))
        count &+= 1
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: capacity &* 2)
        unsafe larger.moveInitialize(from: list, count: count)
        unsafe list.deallocate()
        unsafe list = larger
        capacity &*= 2
    }

    /// Adds a parsed field of `text`, unless it is connection-specific (RFC 9113 §8.2.2) or `exception`.
    @inline(__always)
    mutating func add(_ field: HeadField, _ text: UnsafeBufferPointer<UInt8>, except exception: KnownField) {
        guard field.known != .other else { return unsafe addOther(field, text) }
        let value = unsafe text.part(field.value.start, field.value.end)
        let bit = field.known.bit
        if FieldLines.connectionSpecific & bit != 0 || field.known == exception {
            guard unsafe field.known == .te && value.spells(ignoringCase: "trailers") else { return }
        }
        let name = field.known.name
        var flags = FieldLines.neverIndexed & bit != 0 ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : 0
        if field.known == .xRequestID {
            // Now and then one goes into the table: the others then refer to its name there.
            if requestIDs & 127 == 0 { flags = 0 }
            requestIDs &+= 1
        }
        unsafe append(
            UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), value,
            flags: flags | NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
    }

    @inline(never)
    private mutating func addOther(_ field: HeadField, _ text: UnsafeBufferPointer<UInt8>) {
        let name = unsafe text.part(field.name.start, field.name.end)
        let value = unsafe text.part(field.value.start, field.value.end)
        if unsafe FieldLines.isConnectionSpecific(name, value) { return }
        unsafe add(name, value)
    }

    /// The known fields of `isConnectionSpecific`; `te` passes with the value `trailers`.
    private static var connectionSpecific: UInt64 {
        KnownField.te.bit | KnownField.upgrade.bit | KnownField.connection.bit | KnownField.keepAlive.bit
            | KnownField.proxyConnection.bit | KnownField.transferEncoding.bit
    }

    /// The known fields of `isNeverIndexed`.
    private static var neverIndexed: UInt64 {
        KnownField.cookie.bit | KnownField.setCookie.bit | KnownField.traceparent.bit | KnownField.xRequestID.bit
            | KnownField.authorization.bit | KnownField.xForwardedFor.bit | KnownField.proxyAuthorization.bit
    }

    /// Adds the field lines of `text` from `start` up to the empty line or the end, without connection-specific fields.
    ///
    /// - Parameter exception: the lower-case name of another field to omit.
    mutating func addLines(
        _ text: UnsafeBufferPointer<UInt8>, from start: Int, except exception: StaticString
    ) throws(Malformed) {
        var index = start
        while index < text.count {
            let stop = try unsafe FieldLines.endOfLine(text, from: index)
            if stop == index { return }
            var colon = index
            while colon < stop, unsafe text[colon] != UInt8(ascii: ":") { colon &+= 1 }
            guard colon > index, colon < stop else { throw Malformed() }
            let name = unsafe text.part(index, colon)
            let value = unsafe FieldLines.trimmed(text, colon &+ 1, stop)
            index = stop &+ 2
            guard unsafe FieldRules.isToken(name), unsafe FieldRules.isValue(value) else { throw Malformed() }
            if unsafe FieldLines.isConnectionSpecific(name, value) || name.spells(ignoringCase: exception) { continue }
            unsafe add(name, value)
        }
    }

    /// The offset of the CR that ends the line at `start`.
    static func endOfLine(_ text: UnsafeBufferPointer<UInt8>, from start: Int) throws(Malformed) -> Int {
        var index = start
        while index < text.count, unsafe text[index] != 0x0D { index &+= 1 }
        guard index &+ 1 < text.count, unsafe text[index &+ 1] == 0x0A else { throw Malformed() }
        return index
    }

    private static func trimmed(
        _ text: UnsafeBufferPointer<UInt8>, _ start: Int, _ end: Int
    ) -> UnsafeBufferPointer<UInt8> {
        var start = start
        var end = end
        while start < end, unsafe text[start] == 0x20 || text[start] == 0x09 { start &+= 1 }
        while end > start, unsafe text[end &- 1] == 0x20 || text[end &- 1] == 0x09 { end &-= 1 }
        return unsafe text.part(start, end)
    }

    /// RFC 9113 §8.2.2, case-insensitively.
    private static func isConnectionSpecific(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        switch name.count {
        case 2: unsafe name.spells(ignoringCase: "te") && !value.spells(ignoringCase: "trailers")
        case 7: unsafe name.spells(ignoringCase: "upgrade")
        case 10: unsafe name.spells(ignoringCase: "connection") || name.spells(ignoringCase: "keep-alive")
        case 14: unsafe name.spells(ignoringCase: "http2-settings")
        case 16: unsafe name.spells(ignoringCase: "proxy-connection")
        case 17: unsafe name.spells(ignoringCase: "transfer-encoding")
        default: false
        }
    }

    /// Fields that must not share a compression table with other requests (RFC 7541 §7.1), or whose values never
    /// repeat.
    private static func isNeverIndexed(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        switch name.count {
        case 6: unsafe name.spells(ignoringCase: "cookie")
        case 10: unsafe name.spells(ignoringCase: "set-cookie")
        case 11: unsafe name.spells(ignoringCase: "traceparent")
        case 12: unsafe name.spells(ignoringCase: "x-request-id")
        case 13: unsafe name.spells(ignoringCase: "authorization")
        case 15: unsafe name.spells(ignoringCase: "x-forwarded-for")
        case 19: unsafe name.spells(ignoringCase: "proxy-authorization")
        default: unsafe name.part(0, 7).spells(ignoringCase: "x-auth-")
        }
    }
}
