/// What the fields of a head say about its body and its connection, collected as they are read.
struct FramingNotes {
    private(set) var contentLength = -1
    private(set) var isChunked = false
    private(set) var connections = 0
    /// The value of the last `Connection` field.
    private(set) var connection = ByteRange.empty

    /// Takes a `Content-Length`, `Transfer-Encoding` or `Connection` field into account (RFC 9112 §6); others are
    /// passed by.
    /// - Returns: why the message must be refused, if so.
    @inline(__always)
    mutating func note(_ known: KnownField, _ value: ByteRange, _ bytes: Span<UInt8>, isHTTP10: Bool) -> HeadFailure? {
        switch known {
        case .contentLength:
            guard contentLength < 0 else { return .repeatedContentLength }
            guard !isChunked else { return .transferEncodingWithContentLength }
            guard let length = FramingNotes.decimal(bytes, value) else { return .badContentLength }
            contentLength = length
        case .transferEncoding:
            guard !isHTTP10 else { return .transferEncodingInHTTP10 }
            guard contentLength < 0 else { return .transferEncodingWithContentLength }
            guard !isChunked, bytes.spells("chunked", value) else { return .badTransferEncoding }
            isChunked = true
        case .connection:
            connections &+= 1
            connection = value
        default: break
        }
        return nil
    }

    /// A number of decimal digits only that fits.
    @inline(__always)
    static func decimal(_ bytes: Span<UInt8>, _ range: ByteRange) -> Int? {
        if UInt(bitPattern: range.count &- 1) < 8, range.end >= 8, range.end <= bytes.count {
            return eightDigits(bytes.word(at: range.end &- 8), unused: 8 &- range.count)
        }
        return longDecimal(bytes, range)
    }

    @inline(never)
    private static func longDecimal(_ bytes: Span<UInt8>, _ range: ByteRange) -> Int? {
        // 18 digits always fit; leading zeros do not buy more.
        guard !range.isEmpty, range.count <= 18 else { return nil }
        var value = 0
        var index = range.start
        while index < range.end {
            guard ASCII.isDigit(bytes[index]) else { return nil }
            value = value &* 10 &+ Int(bytes[index] &- 0x30)
            index &+= 1
        }
        return value
    }

    /// The number that the eight bytes of `word` end with, less the first `unused`, all digits at once.
    @inline(__always)
    private static func eightDigits(_ word: UInt64, unused: Int) -> Int? {
        // The last digit is the highest byte; what stands before the first one becomes zeros.
        let shift = UInt64(truncatingIfNeeded: unused) &* 8
        var digits = ((word ^ 0x3030_3030_3030_3030) &>> shift) &<< shift
        // A byte over nine sets its highest bit, here or by itself; a carry comes only out of a byte that did.
        guard (digits &+ 0x7676_7676_7676_7676 | digits) & 0x8080_8080_8080_8080 == 0 else { return nil }
        digits = digits &* 10 &+ digits &>> 8
        let pairs: UInt64 = 0x0000_00FF_0000_00FF
        let high = (digits & pairs) &* (100 &+ 1_000_000 &<< 32)
        let low = (digits &>> 16 & pairs) &* (1 &+ 10_000 &<< 32)
        return Int(truncatingIfNeeded: (high &+ low) &>> 32)
    }
}
