private import CHeadScan

/// The kinds of credentials that the gateway itself makes, each with its prefix: the one list of them.
///
/// What makes such a text takes its prefix from here, and what must not let one pass searches for all of them: none
/// reaches an upstream or a log, and none belongs to a provider that did not make it.
@frozen package enum OwnToken: String, Sendable, CaseIterable {
    /// A session's access token.
    case access = "mat_"
    case refresh = "mrt_"
    /// The value of a session's cookie.
    case cookie = "mct_"
    case apiKey = "mak_"
    /// The token of a link in a mail.
    case link = "mlt_"
    /// The code that an app exchanges for tokens.
    case code = "moc_"

    /// How every such text begins: an `m`, two letters that say what it is, and `_`.
    package var prefix: String { rawValue }

    /// The length of every prefix.
    package static var prefixLength: Int { 4 }

    /// The kind of a text that begins with one of the prefixes.
    package init?(prefixOf text: UnsafeBufferPointer<UInt8>) {
        guard text.count >= Self.prefixLength else { return nil }
        for kind in Self.allCases where unsafe kind.prefix.utf8.elementsEqual(text.prefix(Self.prefixLength)) {
            self = kind
            return
        }
        return nil
    }

    /// Whether a word of a text is one of them: behind a scheme, in quotes, in a URL, or alone.
    package static func appears(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        unsafe mayAppear(in: text) && firstWord(in: text) != nil
    }

    /// Whether one of them may be in a text: whether it has the form of a prefix somewhere.
    ///
    /// A fraction of a cycle for each byte, so that every head for an upstream can be searched.
    @inline(__always)
    package static func mayAppear(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = text.baseAddress, text.count >= prefixLength else { return false }
        return unsafe martlet_has_prefix_form(start, text.count)
    }

    /// Where the first word that begins with a prefix is; it ends before the next byte that no such text has.
    package static func firstWord(in text: UnsafeBufferPointer<UInt8>, from start: Int = 0) -> Range<Int>? {
        guard start >= 0, text.count >= prefixLength, start <= text.count &- prefixLength else { return nil }
        for index in start...(text.count &- prefixLength) {
            guard unsafe text[index] == UInt8(ascii: "m"), unsafe text[index &+ 3] == UInt8(ascii: "_"),
                unsafe index == 0 || !isInWord(text[index &- 1]),
                unsafe OwnToken(prefixOf: UnsafeBufferPointer(rebasing: text[index...])) != nil
            else { continue }
            var end = index &+ prefixLength
            while end < text.count, unsafe isInWord(text[end]) { end &+= 1 }
            return index..<end
        }
        return nil
    }

    /// A text for a log or a trace: of each of them only the prefix is left, followed by `***`.
    package static func masked(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var masked: [UInt8] = []
        var start = 0
        while let word = unsafe firstWord(in: text, from: start) {
            unsafe masked += text[start..<(word.lowerBound &+ prefixLength)]
            masked += "***".utf8
            start = word.upperBound
        }
        return unsafe masked + text[start...]
    }

    /// The same of a text that is one already.
    package static func masked(_ text: String) -> String {
        let bytes = Array(text.utf8)
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            guard unsafe mayAppear(in: bytes) else { return text }
            return unsafe String(decoding: masked(bytes), as: UTF8.self)
        }
    }

    /// Whether the value of `Authorization` is or contains one of them, also as the name or the password of `Basic`.
    package static func appears(inAuthorization value: UnsafeBufferPointer<UInt8>) -> Bool {
        if unsafe appears(in: value) { return true }
        let scheme: StaticString = "basic "
        guard value.count > scheme.utf8CodeUnitCount else { return false }
        for index in 0..<scheme.utf8CodeUnitCount where unsafe value[index] | 0x20 != scheme.utf8Start[index] {
            return false
        }
        let encoded = unsafe value[scheme.utf8CodeUnitCount...].filter { $0 != 0x20 && $0 != UInt8(ascii: "=") }
        return unsafe decoded(encoded).withUnsafeBufferPointer { unsafe appears(in: $0) }
    }

    /// Decodes Base64 in either alphabet, as lenient as the most lenient upstream; other bytes are skipped.
    private static func decoded(_ text: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for byte in text {
            let value: UInt8
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = byte &- UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = byte &- UInt8(ascii: "a") &+ 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = byte &- UInt8(ascii: "0") &+ 52
            case UInt8(ascii: "+"), UInt8(ascii: "-"): value = 62
            case UInt8(ascii: "/"), UInt8(ascii: "_"): value = 63
            default: continue
            }
            bits = bits &<< 6 | UInt32(value)
            count &+= 6
            guard count >= 8 else { continue }
            count &-= 8
            bytes.append(UInt8(truncatingIfNeeded: bits &>> count))
        }
        return bytes
    }

    /// Whether a byte continues a word: a letter, a digit, `-` or `_`.
    private static func isInWord(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte)
            || (0x61...0x7A).contains(byte | 0x20)
    }
}
