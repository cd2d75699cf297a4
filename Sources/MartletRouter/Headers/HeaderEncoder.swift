import MartletConfig
import MartletCore

/// Encodes header values by `encode:`.
///
/// All encodings but `ascii` produce printable ASCII for any text; the caller still checks the result.
struct HeaderEncoder {
    private let encoding: HeaderConfiguration.Encoding

    init(_ encoding: HeaderConfiguration.Encoding) { self.encoding = encoding }

    /// Appends one text.
    ///
    /// - Parameters:
    ///   - guarded: a byte of the separator that must not appear in the text, if it is an element of a joined array.
    /// - Returns: the error if the text cannot be encoded, with a part of it in the buffer; otherwise `nil`.
    func append(_ text: String, guarding guarded: UInt8?, to buffer: inout ByteBuffer) -> ErrorCode? {
        let bytes = text.utf8Span.span
        switch encoding {
        case .percent: appendPercent(bytes, guarded, &buffer)
        case .base64url: buffer.append(text: Base64URL.encode(Array(text.utf8)))
        case .rfc8187: appendExtended(bytes, &buffer)
        case .ascii: return appendASCII(bytes, guarded, &buffer)
        case .json: appendJSON(text, &buffer)
        }
        return nil
    }

    /// Printable ASCII unchanged; `%`, the guarded byte, a space at either end (which field parsers trim) and all else
    /// as `%XX`.
    private func appendPercent(_ bytes: Span<UInt8>, _ guarded: UInt8?, _ buffer: inout ByteBuffer) {
        let last = bytes.count &- 1
        var start = 0
        // Runs of unchanged bytes are copied together.
        for index in 0..<bytes.count {
            let byte = bytes[index]
            if byte.isPrintable, byte != .percent, byte != guarded, byte != .space || (index > 0 && index < last) {
                continue
            }
            append(bytes, start..<index, &buffer)
            appendTriplet(byte, &buffer)
            start = index &+ 1
        }
        append(bytes, start..<bytes.count, &buffer)
    }

    private func append(_ bytes: Span<UInt8>, _ range: Range<Int>, _ buffer: inout ByteBuffer) {
        guard !range.isEmpty else { return }
        unsafe bytes.extracting(range).withUnsafeBufferPointer { unsafe buffer.append($0) }
    }

    private func appendTriplet(_ byte: UInt8, _ buffer: inout ByteBuffer) {
        buffer.append(.percent)
        buffer.append((byte >> 4).hexadecimalDigit)
        buffer.append(byte.hexadecimalDigit)
    }

    /// RFC 8187 §3.2.1 `ext-value`: charset, no language, and the text with all but `attr-char` as `%XX`.
    private func appendExtended(_ bytes: Span<UInt8>, _ buffer: inout ByteBuffer) {
        buffer.append("UTF-8''")
        for index in 0..<bytes.count {
            let byte = bytes[index]
            if Self.isAttributeCharacter(byte) { buffer.append(byte) } else { appendTriplet(byte, &buffer) }
        }
    }

    /// RFC 8187 §3.2.1 `attr-char`: a token character other than `*`, `'` and `%`.
    private static func isAttributeCharacter(_ byte: UInt8) -> Bool {
        byte.isTokenCharacter && byte != .star && byte != UInt8(ascii: "'") && byte != .percent
    }

    /// A JSON text (RFC 8259 §7), in which only strings have characters that are not ASCII.
    private func appendJSON(_ text: String, _ buffer: inout ByteBuffer) {
        for unit in text.utf16 {
            if unit < 0x80 {
                buffer.append(UInt8(truncatingIfNeeded: unit))
                continue
            }
            buffer.append("\\u")
            for shift in [8, 0] {
                let byte = UInt8(truncatingIfNeeded: unit >> UInt16(shift))
                buffer.append((byte >> 4).hexadecimalDigit)
                buffer.append(byte.hexadecimalDigit)
            }
        }
    }

    private func appendASCII(_ bytes: Span<UInt8>, _ guarded: UInt8?, _ buffer: inout ByteBuffer) -> ErrorCode? {
        for index in 0..<bytes.count {
            guard bytes[index].isPrintable else { return .headerNotPrintable }
            if bytes[index] == guarded { return .headerSeparatorInside }
            buffer.append(bytes[index])
        }
        return nil
    }

    /// Why a separator is ambiguous between encoded elements; `nil` if it is not.
    func validationError(forSeparator separator: String) -> String? {
        guard !separator.isEmpty else { return "is empty: the elements would run together" }
        guard separator.utf8.allSatisfy(\.isPrintable) else { return "is not printable ASCII" }
        let clash = separator.utf8.first { byte in
            switch encoding {
            case .percent: byte == .percent || byte.isLetter || byte.isDigit
            case .base64url: byte.isLetter || byte.isDigit || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            case .rfc8187: byte == .percent || byte == UInt8(ascii: "'") || Self.isAttributeCharacter(byte)
            case .ascii: byte.isLetter || byte.isDigit
            // It is written as one text.
            case .json: true
            }
        }
        return clash.map { "has '\(UnicodeScalar($0))', which elements encoded as \(encoding.rawValue) may contain" }
    }
}
