/// Why bytes are no message of protocol buffers.
enum ProtobufError: Error, Sendable, Equatable {
    /// The message ends within a field.
    case truncated
    /// A number has more than 64 bits.
    case overlongNumber
    /// No field has this number, or this encoding.
    case invalidField
    /// A field that the reader needs is encoded as another type.
    case wrongType
    /// A field that may occur once occurs twice.
    case repeated
}

/// Reads the fields of a message of protocol buffers one by one, without copying.
///
/// Every length is compared with the rest of the message. What is embedded is a range, which is read in the same way, so
/// that depth costs nothing; groups, which proto3 has not, are rejected.
struct ProtobufFields {
    /// A field as it was sent.
    struct Field: Equatable {
        let number: UInt64
        let value: Value

        /// The bytes of a string, or of an embedded message.
        var bytes: ByteRange {
            get throws(ProtobufError) {
                guard case .bytes(let range) = value else { throw .wrongType }
                return range
            }
        }
    }

    enum Value: Equatable {
        case number(UInt64)
        case bytes(ByteRange)
        /// A number of fixed size, which nothing here needs.
        case fixed
    }

    private static let maximumNumber: UInt64 = 1 << 29 - 1

    private var position: Int
    private let end: Int

    /// - Parameter range: of the message; it must lie within the bytes that ``next(_:)`` gets.
    init(_ range: ByteRange) { (position, end) = (range.start, range.end) }

    /// The next field; `nil` at the end.
    mutating func next(_ bytes: Span<UInt8>) throws(ProtobufError) -> Field? {
        guard position < end else { return nil }
        let key = try number(bytes)
        guard key >> 3 >= 1, key >> 3 <= ProtobufFields.maximumNumber else { throw .invalidField }
        let value: Value
        switch key & 7 {
        case 0: value = .number(try number(bytes))
        case 1: value = try fixed(8)
        case 2:
            let count = try number(bytes)
            guard count <= UInt64(end &- position) else { throw .truncated }
            value = .bytes(ByteRange(start: position, count: Int(count)))
            position &+= Int(count)
        case 5: value = try fixed(4)
        default: throw .invalidField
        }
        return Field(number: key >> 3, value: value)
    }

    private mutating func fixed(_ count: Int) throws(ProtobufError) -> Value {
        guard end &- position >= count else { throw .truncated }
        position &+= count
        return .fixed
    }

    /// A number in groups of seven bits, the lowest first.
    private mutating func number(_ bytes: Span<UInt8>) throws(ProtobufError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: 0, through: 63, by: 7) {
            guard position < end else { throw .truncated }
            let byte = bytes[position]
            position &+= 1
            guard shift < 63 || byte <= 1 else { throw .overlongNumber }
            value |= UInt64(byte & 0x7F) << UInt64(shift)
            if byte < 0x80 { return value }
        }
        throw .overlongNumber
    }
}

/// Writes messages of protocol buffers.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    /// A number, unless it is 0, which is what a field has that is not there.
    mutating func add(_ field: UInt8, number: UInt64) {
        guard number != 0 else { return }
        bytes.append(field << 3)
        append(number)
    }

    /// A string, or an embedded message.
    mutating func add(_ field: UInt8, _ content: some Collection<UInt8>) {
        bytes.append(field << 3 | 2)
        append(UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    private mutating func append(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
