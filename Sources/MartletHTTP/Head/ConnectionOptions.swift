/// The options of all `Connection` fields of a head (RFC 9110 §7.6.1).
struct ConnectionOptions {
    /// Bounds the work: each option is compared with every field.
    private static let maximum = 32

    private(set) var closes = false
    private(set) var keepsAlive = false
    private(set) var upgrades = false
    private var count = 0

    /// Reads all options and marks the fields that they name; `false` when one is malformed or there are too many.
    @inline(__always)
    mutating func read(_ bytes: Span<UInt8>, _ framing: FramingChecks, _ fields: inout FieldList) -> Bool {
        framing.connections == 1 && matchCommon(bytes, framing.connection) || readAll(bytes, &fields)
    }

    @inline(never)
    private mutating func readAll(_ bytes: Span<UInt8>, _ fields: inout FieldList) -> Bool {
        var index = 0
        while index < fields.count {
            let field = fields[index]
            if field.known == .connection, !readList(bytes, field.value, &fields) { return false }
            index &+= 1
        }
        return true
    }

    /// Matches the options that name no field.
    @inline(__always)
    private mutating func matchCommon(_ bytes: Span<UInt8>, _ option: ByteRange) -> Bool {
        if bytes.spells("keep-alive", option) {
            keepsAlive = true
        } else if bytes.spells("close", option) {
            closes = true
        } else if bytes.spells("upgrade", option) {
            upgrades = true
        } else {
            return false
        }
        return true
    }

    private mutating func readList(_ bytes: Span<UInt8>, _ value: ByteRange, _ fields: inout FieldList) -> Bool {
        var index = value.start
        while index < value.end {
            let byte = bytes[index]
            if byte == UInt8(ascii: ",") || ASCII.isBlank(byte) {
                index &+= 1
                continue
            }
            let start = index
            while index < value.end, Token.isMember(bytes[index]) { index &+= 1 }
            let option = ByteRange(from: start, to: index)
            while index < value.end, ASCII.isBlank(bytes[index]) { index &+= 1 }
            guard !option.isEmpty, index == value.end || bytes[index] == UInt8(ascii: ",") else { return false }
            count &+= 1
            guard count <= ConnectionOptions.maximum else { return false }
            apply(option, bytes, &fields)
        }
        return true
    }

    private mutating func apply(_ option: ByteRange, _ bytes: Span<UInt8>, _ fields: inout FieldList) {
        if matchCommon(bytes, option) { return }
        var index = 0
        while index < fields.count {
            let field = fields[index]
            switch field.known {
            case .host, .contentLength, .transferEncoding: break
            default: if bytes.sameIgnoringCase(field.name, option) { fields.markConnectionOption(at: index) }
            }
            index &+= 1
        }
    }
}
