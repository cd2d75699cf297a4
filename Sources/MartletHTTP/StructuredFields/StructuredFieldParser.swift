internal import MartletCore

/// Reads the parts of a structured field from its bytes, without recursion.
struct StructuredFieldParser {
    private static let maximumKeyLength = 64
    private static let space = UInt8(ascii: " ")

    private let bytes: [UInt8]
    private let maximumItems: Int
    private var index = 0

    /// Begins after leading spaces.
    /// - Parameter maximumItems: of an inner list.
    init(_ bytes: [UInt8], maximumItems: Int = StructuredField.maximumMembers) throws(StructuredFieldError) {
        guard bytes.count <= StructuredField.maximumBytes else {
            throw StructuredFieldError(.structuredFieldTooLarge, at: StructuredField.maximumBytes)
        }
        self.bytes = bytes
        self.maximumItems = maximumItems
        skipSpaces()
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private func error(_ code: ErrorCode) -> StructuredFieldError { StructuredFieldError(code, at: index) }

    private mutating func skipSpaces() { while next == Self.space { index &+= 1 } }

    private mutating func skipBlanks() {
        while let byte = next, ASCII.isBlank(byte) { index &+= 1 }
    }

    /// Whether the next byte is this one, which is then skipped.
    private mutating func skip(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index &+= 1
        return true
    }

    /// Expects nothing but spaces.
    mutating func end() throws(StructuredFieldError) {
        skipSpaces()
        guard index == bytes.count else { throw error(.structuredFieldTrailing) }
    }

    /// Whether another member of a list or dictionary follows `count` of them, after a comma unless it is the first.
    mutating func hasMember(after count: Int) throws(StructuredFieldError) -> Bool {
        guard count > 0 else { return next != nil }
        let end = index
        skipBlanks()
        if next == nil {
            // Only spaces may end a value; a tab may stand before a comma.
            guard bytes[end...].allSatisfy({ $0 == Self.space }) else { throw error(.structuredFieldBadSeparator) }
            return false
        }
        guard skip(UInt8(ascii: ",")) else { throw error(.structuredFieldBadSeparator) }
        skipBlanks()
        guard next != nil else { throw error(.structuredFieldBadSeparator) }
        guard count < StructuredField.maximumMembers else { throw error(.structuredFieldTooMany) }
        return true
    }

    /// An item or an inner list.
    mutating func member() throws(StructuredFieldError) -> StructuredMember {
        next == UInt8(ascii: "(") ? .innerList(try innerList()) : .item(try item())
    }

    /// What follows a key of a dictionary: a member, or only parameters, where the value is true.
    mutating func dictionaryMember() throws(StructuredFieldError) -> StructuredMember {
        if skip(UInt8(ascii: "=")) { return try member() }
        return .item(StructuredItem(value: .boolean(true), parameters: try parameters()))
    }

    /// RFC 8941 §4.2.3.
    mutating func item() throws(StructuredFieldError) -> StructuredItem {
        let value = try value()
        return StructuredItem(value: value, parameters: try parameters())
    }

    /// RFC 8941 §4.2.1.2.
    private mutating func innerList() throws(StructuredFieldError) -> StructuredInnerList {
        index &+= 1
        var items: [StructuredItem] = []
        while true {
            skipSpaces()
            if skip(UInt8(ascii: ")")) { return StructuredInnerList(items: items, parameters: try parameters()) }
            guard items.count < maximumItems else { throw error(.structuredFieldTooMany) }
            guard next != nil else { throw error(.structuredFieldBadInnerList) }
            items.append(try item())
            guard next == Self.space || next == UInt8(ascii: ")") else { throw error(.structuredFieldBadInnerList) }
        }
    }

    /// RFC 8941 §4.2.3.2.
    private mutating func parameters() throws(StructuredFieldError) -> StructuredParameters {
        var parameters = StructuredParameters()
        while skip(UInt8(ascii: ";")) {
            skipSpaces()
            guard parameters.all.count < StructuredField.maximumParameters else { throw error(.structuredFieldTooMany) }
            let key = try key { key in parameters.all.contains { $0.key == key } }
            let value = skip(UInt8(ascii: "=")) ? try value() : .boolean(true)
            parameters.all.append(StructuredParameters.Parameter(key: key, value: value))
        }
        return parameters
    }

    /// RFC 8941 §4.2.3.3.
    /// - Parameter isRepeated: whether there was one of this name before.
    mutating func key(_ isRepeated: (String) -> Bool) throws(StructuredFieldError) -> String {
        let start = index
        guard let first = next, ASCII.isLower(first) || first == UInt8(ascii: "*") else {
            throw error(.structuredFieldBadKey)
        }
        while let byte = next, ASCII.isLower(byte) || ASCII.isDigit(byte) || "_-.*".utf8.contains(byte) {
            index &+= 1
        }
        guard index &- start <= Self.maximumKeyLength else { throw error(.structuredFieldBadKey) }
        let key = String(decoding: bytes[start..<index], as: UTF8.self)
        guard !isRepeated(key) else { throw error(.structuredFieldRepeatedKey) }
        return key
    }

    /// RFC 8941 §4.2.3.1.
    private mutating func value() throws(StructuredFieldError) -> StructuredValue {
        guard let first = next else { throw error(.structuredFieldBadItem) }
        switch first {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: ":"): return .bytes(try byteSequence())
        case UInt8(ascii: "?"): return .boolean(try boolean())
        case UInt8(ascii: "-"), 0x30...0x39: return try number()
        case UInt8(ascii: "*"): return .token(token())
        default:
            guard ASCII.isLetter(first) else { throw error(.structuredFieldBadItem) }
            return .token(token())
        }
    }

    /// RFC 8941 §4.2.6.
    private mutating func token() -> String {
        let start = index
        while let byte = next, Token.isMember(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/") {
            index &+= 1
        }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// RFC 8941 §4.2.5.
    private mutating func string() throws(StructuredFieldError) -> String {
        index &+= 1
        var text: [UInt8] = []
        while let byte = next {
            index &+= 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
                    throw error(.structuredFieldBadString)
                }
                text.append(escaped)
                index &+= 1
            case 0x20...0x7E: text.append(byte)
            default: throw error(.structuredFieldBadString)
            }
        }
        throw error(.structuredFieldBadString)
    }

    /// RFC 8941 §4.2.7.
    private mutating func byteSequence() throws(StructuredFieldError) -> [UInt8] {
        index &+= 1
        guard let end = bytes[index...].firstIndex(of: UInt8(ascii: ":")),
            let decoded = Base64.decode(bytes[index..<end], padding: .required)
        else { throw error(.structuredFieldBadBytes) }
        index = end &+ 1
        return decoded
    }

    /// RFC 8941 §4.2.8.
    private mutating func boolean() throws(StructuredFieldError) -> Bool {
        index &+= 1
        if skip(UInt8(ascii: "1")) { return true }
        guard skip(UInt8(ascii: "0")) else { throw error(.structuredFieldBadBoolean) }
        return false
    }

    /// RFC 8941 §4.2.4.
    private mutating func number() throws(StructuredFieldError) -> StructuredValue {
        let isNegative = skip(UInt8(ascii: "-"))
        let (whole, count) = digits()
        guard (1...15).contains(count) else { throw error(.structuredFieldBadNumber) }
        guard skip(UInt8(ascii: ".")) else { return .integer(isNegative ? -whole : whole) }
        var (fraction, fractionCount) = digits()
        guard count <= 12, (1...3).contains(fractionCount) else { throw error(.structuredFieldBadNumber) }
        while fractionCount < 3 {
            fraction *= 10
            fractionCount += 1
        }
        // At most 12 and 3 digits, which 64 bits hold.
        let thousandths = whole * 1000 + fraction
        return .decimal(thousandths: isNegative ? -thousandths : thousandths)
    }

    /// The digits from here on, at most 16, with their value.
    private mutating func digits() -> (value: Int64, count: Int) {
        var value: Int64 = 0
        var count = 0
        while let byte = next, ASCII.isDigit(byte), count < 16 {
            value = value * 10 + Int64(byte &- 0x30)
            count += 1
            index &+= 1
        }
        return (value, count)
    }
}
