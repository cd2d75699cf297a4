/// Where replies end (RESP2), whatever is in them: the lengths and counts alone are read.
struct RESPFraming {
    /// What the next byte is.
    private enum State {
        case type
        /// In a line whose content does not matter.
        case text
        /// In the number of a `$` or `*` line.
        case number(isArray: Bool, digits: Int, isNegative: Bool)
        /// In the bytes of a string, and the line end behind them.
        case payload(left: Int)
    }

    private static let (carriageReturn, lineFeed) = (UInt8(ascii: "\r"), UInt8(ascii: "\n"))
    /// More digits are no length that any server sends.
    private static let maximumDigits = 10

    private var state = State.type
    private var number = 0
    /// Whether the last byte of the line was a carriage return: a line feed alone ends none.
    private var isAfterReturn = false
    /// The values that are still to come of the reply.
    private var values = 1

    /// Whether the next byte begins a reply.
    var isBetween: Bool { if case .type = state { values == 1 } else { false } }

    /// Advances to the end of the reply, or of the bytes.
    /// - Returns: how many bytes belong to the reply, and whether it ends with them; `nil` for what is not RESP2.
    mutating func advance(_ bytes: UnsafeBufferPointer<UInt8>) -> (count: Int, isEnd: Bool)? {
        var index = 0
        while index < bytes.count {
            if case .payload(let left) = state {
                let count = min(left, bytes.count &- index)
                index += count
                guard left == count else {
                    state = .payload(left: left &- count)
                    return (index, false)
                }
                if endValue() { return (index, true) }
                continue
            }
            let byte = unsafe bytes[index]
            index += 1
            let isLineEnd = isAfterReturn && byte == Self.lineFeed
            isAfterReturn = byte == Self.carriageReturn
            switch state {
            case .type: guard begin(byte) else { return nil }
            case .text where isLineEnd: if endValue() { return (index, true) }
            case .text, .payload: break
            case .number(let isArray, let digits, let isNegative):
                guard isLineEnd else {
                    guard add(byte, isArray: isArray, digits: digits, isNegative: isNegative) else { return nil }
                    continue
                }
                guard digits > 0 else { return nil }
                if endNumber(isArray: isArray, isNegative: isNegative) { return (index, true) }
            }
        }
        return (index, false)
    }

    private mutating func begin(_ byte: UInt8) -> Bool {
        number = 0
        switch byte {
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ":"): state = .text
        case UInt8(ascii: "$"): state = .number(isArray: false, digits: 0, isNegative: false)
        case UInt8(ascii: "*"): state = .number(isArray: true, digits: 0, isNegative: false)
        default: return false
        }
        return true
    }

    private mutating func add(_ byte: UInt8, isArray: Bool, digits: Int, isNegative: Bool) -> Bool {
        switch byte {
        case Self.carriageReturn: return true
        case UInt8(ascii: "-") where digits == 0 && !isNegative:
            state = .number(isArray: isArray, digits: 0, isNegative: true)
        case UInt8(ascii: "0")...UInt8(ascii: "9") where digits < Self.maximumDigits:
            number = number * 10 + Int(byte &- UInt8(ascii: "0"))
            state = .number(isArray: isArray, digits: digits + 1, isNegative: isNegative)
        default: return false
        }
        return true
    }

    /// - Returns: whether the reply is complete.
    private mutating func endNumber(isArray: Bool, isNegative: Bool) -> Bool {
        guard !isNegative else { return endValue() }
        guard isArray else {
            state = .payload(left: number + 2)
            return false
        }
        values += number
        return endValue()
    }

    /// - Returns: whether the reply is complete.
    private mutating func endValue() -> Bool {
        state = .type
        values &-= 1
        guard values == 0 else { return false }
        values = 1
        return true
    }
}
