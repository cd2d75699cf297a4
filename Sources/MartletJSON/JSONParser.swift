private import MartletCore

/// A single-pass recursive-descent parser; the depth limit bounds its recursion.
struct JSONParser {
    private let bytes: [UInt8]
    private let maximumDepth: Int
    private let maximumMembers: Int
    private var valuesLeft: Int
    private var offset = 0
    /// The filter mask of the last string: one of 64 bits by its bytes, or all bits if it had escapes.
    private var mask: UInt64 = 0

    init(_ bytes: [UInt8], _ limits: JSONLimits) {
        self.bytes = bytes
        maximumDepth = limits.maximumDepth
        maximumMembers = limits.maximumMembers
        valuesLeft = limits.maximumValues
    }

    mutating func document() throws(JSONError) -> JSONValue {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { throw JSONError(.jsonByteOrderMark, at: 0) }
        let value = try value(depth: 0)
        skipWhitespace()
        guard offset == bytes.count else { throw JSONError(.jsonTrailingBytes, at: offset) }
        return value
    }

    /// The members of a document that is an object, with their string values as secrets.
    mutating func topMembers() throws(JSONError) -> [JSONMember]? {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { throw JSONError(.jsonByteOrderMark, at: 0) }
        skipWhitespace()
        guard try current() == UInt8(ascii: "{") else {
            _ = try document()
            return nil
        }
        guard maximumDepth > 0 else { throw JSONError(.jsonTooDeep, at: offset) }
        var members: [JSONMember] = []
        var names: Set<[UInt8]> = []
        offset &+= 1
        skipWhitespace()
        if !consume(UInt8(ascii: "}")) {
            repeat {
                guard members.count < maximumMembers else { throw JSONError(.jsonTooManyValues, at: offset) }
                let member = try topMember()
                guard names.insert(Array(member.name.utf8)).inserted else {
                    throw JSONError(.jsonDuplicateName, at: offset, member: member.name)
                }
                members.append(member)
                skipWhitespace()
            } while consume(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        skipWhitespace()
        guard offset == bytes.count else { throw JSONError(.jsonTrailingBytes, at: offset) }
        return members
    }

    private mutating func topMember() throws(JSONError) -> JSONMember {
        try countValue()
        skipWhitespace()
        guard try current() == UInt8(ascii: "\"") else { throw JSONError(.jsonUnexpectedByte, at: offset) }
        let name = try string()
        skipWhitespace()
        try expect(UInt8(ascii: ":"))
        skipWhitespace()
        guard try current() == UInt8(ascii: "\"") else {
            do throws(JSONError) {
                return JSONMember(name: name, value: .other(try value(depth: 1)))
            } catch {
                throw JSONError(error.code, at: error.offset, member: name)
            }
        }
        return JSONMember(name: name, value: .text(Secret(try secretBytes())))
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        skipWhitespace()
        switch try current() {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        default: throw JSONError(.jsonUnexpectedByte, at: offset)
        }
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
        guard depth < maximumDepth else { throw JSONError(.jsonTooDeep, at: offset) }
        offset &+= 1
        var members: [JSONObject.Member] = []
        var names = JSONNameSet()
        skipWhitespace()
        if consume(UInt8(ascii: "}")) { return JSONObject(members: members) }
        // Enough for most documents; nested objects are many and small.
        if depth == 0 { members.reserveCapacity(16) }
        while true {
            skipWhitespace()
            let start = offset
            guard try current() == UInt8(ascii: "\"") else { throw JSONError(.jsonUnexpectedByte, at: offset) }
            let name = try string()
            guard names.insert(name, mask: mask, beside: members) else {
                throw JSONError(.jsonDuplicateName, at: start)
            }
            skipWhitespace()
            try expect(UInt8(ascii: ":"))
            try countValue()
            members.append(JSONObject.Member(name: name, value: try value(depth: depth &+ 1)))
            skipWhitespace()
            if consume(UInt8(ascii: ",")) { continue }
            try expect(UInt8(ascii: "}"))
            return JSONObject(members: members)
        }
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
        guard depth < maximumDepth else { throw JSONError(.jsonTooDeep, at: offset) }
        offset &+= 1
        var elements: [JSONValue] = []
        skipWhitespace()
        if consume(UInt8(ascii: "]")) { return elements }
        while true {
            try countValue()
            elements.append(try value(depth: depth &+ 1))
            skipWhitespace()
            if consume(UInt8(ascii: ",")) { continue }
            try expect(UInt8(ascii: "]"))
            return elements
        }
    }

    /// Counts a member or an element before it is parsed.
    private mutating func countValue() throws(JSONError) {
        guard valuesLeft > 0 else { throw JSONError(.jsonTooManyValues, at: offset) }
        valuesLeft &-= 1
    }

    private mutating func literal(_ text: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for byte in text.utf8 { try expect(byte) }
        return value
    }
}

// MARK: - Numbers

extension JSONParser {
    private mutating func number() throws(JSONError) -> JSONNumber {
        let start = offset
        _ = consume(UInt8(ascii: "-"))
        if !consume(UInt8(ascii: "0")) { try digits() }
        if consume(UInt8(ascii: ".")) { try digits() }
        if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
            if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
            try digits()
        }
        if offset < bytes.count, Self.isDigit(bytes[offset]) { throw JSONError(.jsonBadNumber, at: offset) }
        return JSONNumber(validated: asciiText(start..<offset))
    }

    private mutating func digits() throws(JSONError) {
        let start = offset
        while offset < bytes.count, Self.isDigit(bytes[offset]) { offset &+= 1 }
        if offset == bytes.count, offset == start { throw JSONError(.jsonUnexpectedEnd, at: offset) }
        guard offset > start else { throw JSONError(.jsonBadNumber, at: offset) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- 48 < 10 }
}

// MARK: - Strings

extension JSONParser {
    private mutating func string() throws(JSONError) -> String {
        offset &+= 1
        let start = offset
        let isASCII = skipPlain()
        switch try current() {
        case UInt8(ascii: "\""):
            let run = start..<offset
            offset &+= 1
            mask = mask(of: run)
            return isASCII ? asciiText(run) : try text(bytes[run], at: start)
        case UInt8(ascii: "\\"): return try escapedString(from: start)
        default: throw JSONError(.jsonControlCharacter, at: offset)
        }
    }

    /// Advances to the next quote, backslash or control character, or to the end.
    /// - Returns: whether all bytes before it are ASCII.
    private mutating func skipPlain() -> Bool {
        let (end, seen) = unsafe bytes.withUnsafeBytes { [offset] bytes in
            var index = offset
            var seen: UInt64 = 0
            // Eight at a time: the lowest set bit belongs to the first byte that ends the run.
            while index &+ 8 <= bytes.count {
                let word = unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                let stops = Self.stops(word)
                if stops != 0 {
                    let byte = stops.trailingZeroBitCount / 8
                    return (index &+ byte, seen | word & (1 &<< UInt64(byte &* 8) &- 1))
                }
                seen |= word
                index &+= 8
            }
            while index < bytes.count {
                let byte = unsafe bytes[index]
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { break }
                seen |= UInt64(byte)
                index &+= 1
            }
            return (index, seen)
        }
        offset = end
        return seen & 0x8080_8080_8080_8080 == 0
    }

    /// Sets the highest bit of each byte that is a quote, a backslash or a control character; bits above the first such
    /// byte may be wrong.
    @inline(__always)
    private static func stops(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quote = word ^ ones &* 0x22
        let backslash = word ^ ones &* 0x5C
        let below = (word &- ones &* 0x20) & ~word
        return ((quote &- ones) & ~quote | (backslash &- ones) & ~backslash | below) & 0x8080_8080_8080_8080
    }

    /// The string of a range that is known to be ASCII.
    private func asciiText(_ run: Range<Int>) -> String {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            let text = unsafe UnsafeBufferPointer(rebasing: bytes[run])
            // Small strings are stored inline and are cheap to validate.
            guard text.count <= 15 else { return unsafe String(decoding: text, as: UTF8.self) }
            return unsafe String(unsafeUninitializedCapacity: text.count) { buffer in
                unsafe buffer.update(fromContentsOf: text)
            }
        }
    }

    private func mask(of run: Range<Int>) -> UInt64 {
        guard !run.isEmpty else { return 1 }
        let (first, last) = (UInt64(bytes[run.lowerBound]), UInt64(bytes[run.upperBound &- 1]))
        return 1 &<< (first &* 5 &+ last &* 3 &+ UInt64(run.count))
    }

    /// Parses the rest of a string that has an escape at `offset`.
    private mutating func escapedString(from start: Int) throws(JSONError) -> String {
        mask = .max
        var plain = Array(bytes[start..<offset])
        while offset < bytes.count {
            let byte = bytes[offset]
            if byte < 0x20 { throw JSONError(.jsonControlCharacter, at: offset) }
            offset &+= 1
            if byte == UInt8(ascii: "\"") { return try text(plain[...], at: start) }
            if byte == UInt8(ascii: "\\") {
                try escape(into: &plain)
            } else {
                plain.append(byte)
            }
        }
        throw JSONError(.jsonUnexpectedEnd, at: offset)
    }

    /// The unescaped bytes of a string, in an array that is never reallocated, so that no copies are left behind.
    private mutating func secretBytes() throws(JSONError) -> [UInt8] {
        offset &+= 1
        let start = offset
        var plain: [UInt8] = []
        // Unescaping only shortens, so the raw length suffices and the array does not have to grow.
        plain.reserveCapacity(distanceToQuote())
        while offset < bytes.count {
            let byte = bytes[offset]
            if byte < 0x20 { throw JSONError(.jsonControlCharacter, at: offset) }
            offset &+= 1
            if byte == UInt8(ascii: "\"") {
                guard (try? UTF8Span(validating: plain.span)) != nil else {
                    throw JSONError(.jsonInvalidUTF8, at: start)
                }
                return plain
            }
            if byte == UInt8(ascii: "\\") {
                try escape(into: &plain)
            } else {
                plain.append(byte)
            }
        }
        throw JSONError(.jsonUnexpectedEnd, at: offset)
    }

    /// The number of bytes from `offset` to the quote that ends the string.
    private func distanceToQuote() -> Int {
        var index = offset
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            index &+= bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index, bytes.count) &- offset
    }

    private func text(_ run: ArraySlice<UInt8>, at start: Int) throws(JSONError) -> String {
        guard let text = String(validating: run, as: UTF8.self) else { throw JSONError(.jsonInvalidUTF8, at: start) }
        return text
    }

    /// Parses an escape after its backslash.
    private mutating func escape(into plain: inout [UInt8]) throws(JSONError) {
        let kind = try current()
        offset &+= 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): plain.append(kind)
        case UInt8(ascii: "b"): plain.append(0x08)
        case UInt8(ascii: "f"): plain.append(0x0C)
        case UInt8(ascii: "n"): plain.append(0x0A)
        case UInt8(ascii: "r"): plain.append(0x0D)
        case UInt8(ascii: "t"): plain.append(0x09)
        case UInt8(ascii: "u"): plain.append(contentsOf: String(try scalar()).utf8)
        default: throw JSONError(.jsonBadEscape, at: offset &- 1)
        }
    }

    /// Parses the digits of a `\u` escape, or of two that form a surrogate pair.
    private mutating func scalar() throws(JSONError) -> Unicode.Scalar {
        let start = offset
        let unit = try codeUnit()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard unit < 0xDC00, offset &+ 1 < bytes.count,
            bytes[offset] == UInt8(ascii: "\\"), bytes[offset &+ 1] == UInt8(ascii: "u")
        else { throw JSONError(.jsonLoneSurrogate, at: start) }
        offset &+= 2
        let low = try codeUnit()
        guard (0xDC00...0xDFFF).contains(low),
            let scalar = Unicode.Scalar(0x10000 &+ (UInt32(unit) &- 0xD800) &<< 10 &+ (UInt32(low) &- 0xDC00))
        else { throw JSONError(.jsonLoneSurrogate, at: start) }
        return scalar
    }

    private mutating func codeUnit() throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = Self.hexadecimalDigit(try current()) else { throw JSONError(.jsonBadEscape, at: offset) }
            unit = unit &<< 4 | UInt16(digit)
            offset &+= 1
        }
        return unit
    }

    private static func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte &- 48
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte &- 87
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte &- 55
        default: nil
        }
    }
}

// MARK: - Bytes

extension JSONParser {
    private func current() throws(JSONError) -> UInt8 {
        guard offset < bytes.count else { throw JSONError(.jsonUnexpectedEnd, at: offset) }
        return bytes[offset]
    }

    private mutating func consume(_ byte: UInt8) -> Bool {
        guard offset < bytes.count, bytes[offset] == byte else { return false }
        offset &+= 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try current() == byte else { throw JSONError(.jsonUnexpectedByte, at: offset) }
        offset &+= 1
    }

    private mutating func skipWhitespace() {
        while offset < bytes.count {
            switch bytes[offset] {
            case 0x20, 0x09, 0x0A, 0x0D: offset &+= 1
            default: return
            }
        }
    }
}
