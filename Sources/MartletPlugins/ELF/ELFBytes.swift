/// The bytes of a file, read as little-endian numbers; each access is checked.
struct ELFBytes {
    let bytes: [UInt8]

    /// - Parameter what: names the structure in errors.
    func number<Value: FixedWidthInteger>(
        _ type: Value.Type, at offset: Int, _ what: StaticString
    ) throws(ELFError) -> Value {
        let size = Value.bitWidth / 8
        guard offset >= 0, offset <= bytes.count, bytes.count &- offset >= size else {
            throw ELFError(kind: .damaged, offset: offset, reason: "the file ends within \(what)")
        }
        var value: Value = 0
        for index in 0..<size { value |= Value(truncatingIfNeeded: bytes[offset &+ index]) &<< Value(8 &* index) }
        return value
    }

    /// A 64-bit number that has to be an offset or a size.
    func size(at offset: Int, _ what: StaticString) throws(ELFError) -> Int {
        let value = try number(UInt64.self, at: offset, what)
        guard let size = Int(exactly: value), size < 1 << 48 else {
            throw ELFError(kind: .damaged, offset: offset, reason: "\(what) has an impossible size")
        }
        return size
    }

    /// The text up to the next NUL within the bounds of a table; `nil` if there is none.
    func text(at offset: Int, before end: Int) -> String? {
        let end = min(end, bytes.count)
        guard offset >= 0, offset < end, let stop = bytes[offset..<end].firstIndex(of: 0) else { return nil }
        return String(decoding: bytes[offset..<stop], as: UTF8.self)
    }
}
