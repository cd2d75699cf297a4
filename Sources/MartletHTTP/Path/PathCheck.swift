/// Checks an unusual path in one pass, decoded, segment by segment.
struct PathCheck {
    /// The decoded start of the current segment, as far as it matters.
    private enum Segment { case empty, dot, dots, other }

    private let keepsEncodedSlash: Bool
    private let keepsEncodedPercent: Bool
    private let mergesSlashes: Bool
    private var segment = Segment.empty
    private var utf8 = UTF8Run()
    private var lookAlikes = LookAlikeRun()
    /// Whether the normal form differs from the path.
    private(set) var needsRewrite = false

    init(keepsEncodedSlash: Bool, keepsEncodedPercent: Bool, mergesSlashes: Bool) {
        self.keepsEncodedSlash = keepsEncodedSlash
        self.keepsEncodedPercent = keepsEncodedPercent
        self.mergesSlashes = mergesSlashes
    }

    /// Whether the path, which begins with a slash, is unambiguous.
    mutating func accepts(_ path: Span<UInt8>) -> Bool {
        var index = 1
        while index < path.count {
            let byte = path[index]
            if byte == UInt8(ascii: "%") {
                guard let value = PathCheck.triplet(path, at: index), consumeEncoded(value) else { return false }
                if PathByte.isUnreserved(value) || isLower(path[index &+ 1]) || isLower(path[index &+ 2]) {
                    needsRewrite = true
                }
                index &+= 3
                continue
            }
            if byte >= 0x80 {
                guard consumeText(byte) else { return false }
                needsRewrite = true
                index &+= 1
                continue
            }
            guard PathByte.isPlain(byte), utf8.isComplete else { return false }
            if byte == UInt8(ascii: "/") {
                if mergesSlashes, path[index &- 1] == UInt8(ascii: "/") {
                    needsRewrite = true
                } else {
                    guard segment == .other else { return false }
                    segment = .empty
                    _ = lookAlikes.accepts(UInt32(byte))
                }
            } else {
                guard consume(byte) else { return false }
            }
            index &+= 1
        }
        return utf8.isComplete && !isDotSegment
    }

    private var isDotSegment: Bool { segment == .dot || segment == .dots }

    private mutating func consumeEncoded(_ value: UInt8) -> Bool {
        if value >= 0x80 { return consumeText(value) }
        guard utf8.isComplete else { return false }
        switch value {
        case 0...0x1F, 0x7F, UInt8(ascii: "\\"): return false
        case UInt8(ascii: "%"):
            segment = .other
            return keepsEncodedPercent && lookAlikes.accepts(UInt32(value))
        case UInt8(ascii: "/"):
            // An upstream that decodes it sees a new segment: dots on either side of it are dot segments.
            guard keepsEncodedSlash, !isDotSegment else { return false }
            segment = .empty
            return lookAlikes.accepts(UInt32(value))
        default: return consume(value)
        }
    }

    /// A byte of a character beyond ASCII, encoded or as it is.
    private mutating func consumeText(_ byte: UInt8) -> Bool {
        segment = .other
        guard utf8.consume(byte) else { return false }
        return !utf8.isComplete || lookAlikes.accepts(utf8.scalar)
    }

    /// A character of the segment, decoded; `false` if it makes a dot segment with parameters.
    private mutating func consume(_ byte: UInt8) -> Bool {
        if byte == UInt8(ascii: ";"), isDotSegment { return false }
        guard lookAlikes.accepts(UInt32(byte)) else { return false }
        switch segment {
        case .empty where byte == UInt8(ascii: "."): segment = .dot
        case .dot where byte == UInt8(ascii: "."): segment = .dots
        default: segment = .other
        }
        return true
    }

    private func isLower(_ digit: UInt8) -> Bool { digit >= UInt8(ascii: "a") }

    /// The byte that a `%` at `index` and two hexadecimal digits stand for.
    static func triplet(_ path: Span<UInt8>, at index: Int) -> UInt8? {
        guard index &+ 2 < path.count, let high = ASCII.hexValue(path[index &+ 1]),
            let low = ASCII.hexValue(path[index &+ 2])
        else { return nil }
        return high << 4 | low
    }
}

/// Validates a run of bytes over 0x7F as UTF-8 without overlong forms and surrogates (RFC 3629 §4).
struct UTF8Run {
    private var pending = 0
    /// The last character, once it is complete.
    private(set) var scalar: UInt32 = 0
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    /// Whether no character is truncated.
    var isComplete: Bool { pending == 0 }

    mutating func consume(_ byte: UInt8) -> Bool {
        if pending > 0 {
            guard byte >= lowest, byte <= highest else { return false }
            pending &-= 1
            lowest = 0x80
            highest = 0xBF
            scalar = scalar &<< 6 | UInt32(byte & 0x3F)
            return true
        }
        // The payload bits of the first byte.
        scalar = UInt32(byte & (byte < 0xE0 ? 0x1F : byte < 0xF0 ? 0x0F : 0x07))
        switch byte {
        case 0xC2...0xDF: pending = 1
        case 0xE0...0xEF:
            pending = 2
            if byte == 0xE0 { lowest = 0xA0 }
            if byte == 0xED { highest = 0x9F }
        case 0xF0...0xF4:
            pending = 3
            if byte == 0xF0 { lowest = 0x90 }
            if byte == 0xF4 { highest = 0x8F }
        default: return false
        }
        return true
    }
}
