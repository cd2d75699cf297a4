internal import MartletHTTP

/// The characters allowed in field names and values (RFC 9113 §8.2.1, restricted to what HTTP/1 allows).
enum FieldRules {
    /// Indexed by ASCII byte: the byte itself if it is a token character other than an upper-case letter, else NUL
    /// (RFC 9110 §5.6.2).
    private static var names: StaticString {
        """
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0!\0#$%&'\0\0*+\0-.\0\
        0123456789\0\0\0\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0^_\
        `abcdefghijklmno\
        pqrstuvwxyz\0|\0~\0
        """
    }

    @inline(__always)
    private static func isNameByte(_ byte: UInt8) -> Bool {
        guard byte < 0x80 else { return false }
        return unsafe names.utf8Start[Int(byte)] != 0
    }

    /// A field name in lower case.
    static func isName(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !bytes.isEmpty else { return false }
        for index in 0..<bytes.count where unsafe !isNameByte(bytes[index]) { return false }
        return true
    }

    /// A token in any letter case.
    static func isToken(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !bytes.isEmpty else { return false }
        for index in 0..<bytes.count {
            let byte = unsafe bytes[index]
            if !isNameByte(byte), byte &- 0x41 >= 26 { return false }
        }
        return true
    }

    /// The bytes of an authority: those of RFC 3986 without percent-encoding; indexed like `names`.
    private static var authorities: StaticString {
        """
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0!\0\0$%&'()*+,-.\0\
        0123456789:;\0=\0\0\
        @ABCDEFGHIJKLMNO\
        PQRSTUVWXYZ[\0]\0_\
        \0abcdefghijklmno\
        pqrstuvwxyz\0\0\0~\0
        """
    }

    /// `:authority` or `host`: only characters of authorities.
    static func isAuthority(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in 0..<bytes.count {
            let byte = unsafe bytes[index]
            guard byte < 0x80, unsafe authorities.utf8Start[Int(byte)] != 0 else { return false }
        }
        return true
    }

    /// `:scheme` (RFC 3986 §3.1).
    static func isScheme(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in 0..<bytes.count {
            let byte = unsafe bytes[index]
            if (byte | 0x20) &- 0x61 < 26 { continue }
            let isOther = byte &- 0x30 < 10 || byte == 0x2B || byte == 0x2D || byte == 0x2E
            guard index > 0, isOther else { return false }
        }
        return !bytes.isEmpty
    }

    /// A field value: text, tabs and bytes over 0x7F, without leading or trailing white space.
    static func isValue(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var hasObsText = false
        return unsafe isValue(bytes, &hasObsText)
    }

    /// The same; `hasObsText` becomes true where there are bytes over 0x7F.
    static func isValue(_ bytes: UnsafeBufferPointer<UInt8>, _ hasObsText: inout Bool) -> Bool {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return true }
        let last = unsafe base[bytes.count &- 1]
        let first = unsafe base[0]
        if first == 0x20 || first == 0x09 || last == 0x20 || last == 0x09 { return false }
        let text = unsafe bytes.span
        var index = text.endOfText(from: 0)
        while index < text.count {
            guard text[index] == 0x09 || text[index] >= 0x80 else { return false }
            if text[index] >= 0x80 { hasObsText = true }
            index = text.endOfText(from: index &+ 1)
        }
        return true
    }

    /// Only bytes that are allowed in a request line or an authority: 0x21–0x7E.
    static func isVisible(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in 0..<bytes.count {
            let byte = unsafe bytes[index]
            if byte < 0x21 || byte > 0x7E { return false }
        }
        return true
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether the bytes equal `text`.
    @inline(__always)
    func spells(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count where unsafe self[index] != text.utf8Start[index] { return false }
        return true
    }

    /// Whether the bytes equal `text`, which is in lower case, case-insensitively.
    func spells(ignoringCase text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count where unsafe lowered(self[index]) != text.utf8Start[index] { return false }
        return true
    }

    /// Whether both are equal, ASCII letters case-insensitively.
    func isSame(ignoringCase other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where unsafe lowered(self[index]) != lowered(other[index]) { return false }
        return true
    }

    /// The bytes from `start` up to `end`; empty when out of bounds.
    func part(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
        guard let baseAddress, start >= 0, start < end, end <= count else {
            return unsafe UnsafeBufferPointer(start: nil, count: 0)
        }
        return unsafe UnsafeBufferPointer(start: baseAddress + start, count: end &- start)
    }
}

/// The byte with an upper-case letter made lower case.
func lowered(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
