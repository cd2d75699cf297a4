import MartletConfig
import MartletCore

/// Writes texts in one of the encodings of `encode:`.
///
/// All but `ascii` write printable ASCII whatever the text holds; the caller checks the outcome all the same.
struct HeaderEncoder {
    private let encoding: HeaderConfiguration.Encoding

    init(_ encoding: HeaderConfiguration.Encoding) { self.encoding = encoding }

    /// Appends one text.
    ///
    /// - Parameters:
    ///   - guarded: a byte of the separator that must not show in the text, where it is an element of a joined array.
    /// - Returns: `nil`, or why the text cannot be carried; the buffer then has a part of it.
    func append(_ text: String, guarding guarded: UInt8?, to buffer: inout ByteBuffer) -> ErrorCode? {
        let bytes = text.utf8Span.span
        switch encoding {
        case .percent: appendPercent(bytes, guarded, &buffer)
        case .base64url: buffer.append(text: Base64URL.encode(Array(text.utf8)))
        case .rfc8187: appendExtended(bytes, &buffer)
        case .ascii: return appendASCII(bytes, guarded, &buffer)
        }
        return nil
    }

    /// Printable ASCII as it is; `%`, the guarded byte, a space at either end (which field parsers trim) and all else as `%XX`.
    private func appendPercent(_ bytes: Span<UInt8>, _ guarded: UInt8?, _ buffer: inout ByteBuffer) {
        let last = bytes.count &- 1
        var start = 0
        // What may stand as it is goes over in one piece.
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

    private func appendASCII(_ bytes: Span<UInt8>, _ guarded: UInt8?, _ buffer: inout ByteBuffer) -> ErrorCode? {
        for index in 0..<bytes.count {
            guard bytes[index].isPrintable else { return .headerNotPrintable }
            if bytes[index] == guarded { return .headerSeparatorInside }
            buffer.append(bytes[index])
        }
        return nil
    }

    /// Why a separator cannot be told from what elements are written with, if so.
    func problem(withSeparator separator: String) -> String? {
        guard !separator.isEmpty else { return "is empty, so that the elements would run together" }
        guard separator.utf8.allSatisfy(\.isPrintable) else { return "is not printable ASCII" }
        let clash = separator.utf8.first { byte in
            switch encoding {
            case .percent: byte == .percent || byte.isLetter || byte.isDigit
            case .base64url: byte.isLetter || byte.isDigit || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            case .rfc8187: byte == .percent || byte == UInt8(ascii: "'") || Self.isAttributeCharacter(byte)
            case .ascii: byte.isLetter || byte.isDigit
            }
        }
        return clash.map { "has '\(UnicodeScalar($0))', which elements in \(encoding.rawValue) may contain" }
    }
}
