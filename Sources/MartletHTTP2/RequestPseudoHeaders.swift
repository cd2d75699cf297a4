internal import MartletCore

/// The pseudo-header fields of a request (RFC 9113 §8.3.1, RFC 8441 §4), buffered until the first line can be written.
struct RequestPseudoHeaders: ~Copyable {
    enum Part: Int { case method, path, scheme, authority, protocolName }

    /// What a value is.
    struct Traits: OptionSet {
        let rawValue: UInt8

        static let connect = Traits(rawValue: 1)
        static let options = Traits(rawValue: 2)
        /// The scheme is http or https.
        static let http = Traits(rawValue: 4)
        /// The path begins with a slash.
        static let regular = Traits(rawValue: 8)
        static let asterisk = Traits(rawValue: 16)
        /// The path has bytes over 0x7F.
        static let obsText = Traits(rawValue: 32)
        static let fragment = Traits(rawValue: 64)
    }

    private var bytes = ByteBuffer()
    private var starts = InlineArray<5, Int>(repeating: 0)
    private var ends = InlineArray<5, Int>(repeating: 0)
    /// One bit for each part that the block has, stored or not.
    private var seen: UInt8 = 0
    /// What the values of all parts are.
    private var traits: Traits = []
    /// The request is an extended CONNECT, and one for a WebSocket.
    var isTunnel = false
    var isWebSocket = false

    mutating func clear() {
        bytes.removeAll()
        seen = 0
        traits = []
        isTunnel = false
        isWebSocket = false
    }

    @inline(__always)
    func has(_ part: Part) -> Bool { seen >> UInt8(truncatingIfNeeded: part.rawValue) & 1 != 0 }

    /// The part with this name.
    static func named(_ name: UnsafeBufferPointer<UInt8>) -> Part? {
        switch name.count {
        case 5: unsafe name.spells(":path") ? .path : nil
        case 7: unsafe name.spells(":method") ? .method : name.spells(":scheme") ? .scheme : nil
        case 9: unsafe name.spells(":protocol") ? .protocolName : nil
        case 10: unsafe name.spells(":authority") ? .authority : nil
        default: nil
        }
    }

    /// Checks the value of a part by itself; nil if it is malformed.
    ///
    /// These are the checks that nghttp2 makes where it checks messages itself.
    static func check(_ part: Part, _ value: UnsafeBufferPointer<UInt8>) -> Traits? {
        guard !value.isEmpty else { return nil }
        switch part {
        case .method:
            guard unsafe FieldRules.isToken(value) else { return nil }
            return unsafe value.spells("CONNECT") ? .connect : value.spells("OPTIONS") ? .options : []
        case .path: return unsafe checkPath(value)
        case .scheme:
            if unsafe value.spells("https") || value.spells("http") { return .http }
            guard unsafe FieldRules.isScheme(value) else { return nil }
            return unsafe value.spells(ignoringCase: "https") || value.spells(ignoringCase: "http") ? .http : []
        case .authority: return unsafe FieldRules.isAuthority(value) ? [] : nil
        case .protocolName: return unsafe FieldRules.isValue(value) ? [] : nil
        }
    }

    private static func checkPath(_ path: UnsafeBufferPointer<UInt8>) -> Traits? {
        var traits: Traits = unsafe path.spells("*") ? .asterisk : []
        if unsafe path[0] == UInt8(ascii: "/") { traits.insert(.regular) }
        for index in 0..<path.count {
            let byte = unsafe path[index]
            if byte < 0x21 || byte == 0x7F { return nil }
            if byte >= 0x80 { traits.insert(.obsText) }
            if byte == UInt8(ascii: "#") { traits.insert(.fragment) }
        }
        return traits
    }

    /// Takes a part whose value was checked; `false` for a duplicate.
    @inline(__always)
    mutating func accept(_ part: Part, _ traits: Traits) -> Bool {
        guard !has(part) else { return false }
        seen |= 1 << UInt8(truncatingIfNeeded: part.rawValue)
        self.traits.formUnion(traits)
        return true
    }

    @inline(__always)
    func has(_ trait: Traits) -> Bool { traits.contains(trait) }

    /// Whether the parts make up a request; `hasHost` is whether the block has a `host` field.
    func isComplete(hasHost: Bool) -> Bool {
        if isPlainConnect { return !has(.scheme) && !has(.path) && has(.authority) }
        guard has(.method), has(.path), has(.scheme), has(.authority) || hasHost else { return false }
        guard !has(.protocolName) || (traits.contains(.connect) && has(.authority)) else { return false }
        return !traits.contains(.http) || traits.contains(.regular) || traits.isSuperset(of: [.options, .asterisk])
    }

    /// CONNECT without `:protocol` (RFC 9113 §8.5).
    var isPlainConnect: Bool { traits.contains(.connect) && !has(.protocolName) }

    /// Stores an accepted part.
    mutating func store(_ part: Part, _ value: UnsafeBufferPointer<UInt8>) {
        starts[part.rawValue] = bytes.count
        unsafe bytes.append(value)
        ends[part.rawValue] = bytes.count
    }

    /// The part's bytes; valid until the next `store`.
    @unsafe func value(_ part: Part) -> UnsafeBufferPointer<UInt8> {
        guard has(part), let base = unsafe bytes.bytes.baseAddress else {
            return unsafe UnsafeBufferPointer(start: nil, count: 0)
        }
        let start = starts[part.rawValue]
        return unsafe UnsafeBufferPointer(start: base + start, count: ends[part.rawValue] &- start)
    }
}
