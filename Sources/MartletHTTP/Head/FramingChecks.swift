/// The framing and connection fields of a head, checked as they are read.
struct FramingChecks {
    private(set) var contentLength = -1
    private(set) var isChunked = false
    private(set) var connections = 0
    /// The value of the last `Connection` field.
    private(set) var connection = ByteRange.empty

    /// Checks a `Content-Length`, `Transfer-Encoding` or `Connection` field (RFC 9112 §6); others are ignored.
    /// - Returns: why the message is rejected, or nil.
    @inline(__always)
    mutating func check(_ known: KnownField, _ value: ByteRange, _ bytes: Span<UInt8>, isHTTP10: Bool) -> HeadError? {
        switch known {
        case .contentLength:
            guard contentLength < 0 else { return .repeatedContentLength }
            guard !isChunked else { return .transferEncodingWithContentLength }
            guard let length = FramingChecks.decimal(bytes, value) else { return .badContentLength }
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

    /// A number that consists of decimal digits only and does not overflow.
    @inline(__always)
    static func decimal(_ bytes: Span<UInt8>, _ range: ByteRange) -> Int? {
        if UInt(bitPattern: range.count &- 1) < 8, range.end >= 8, range.end <= bytes.count {
            return eightDigits(bytes.word(at: range.end &- 8), unused: 8 &- range.count)
        }
        return longDecimal(bytes, range)
    }

    @inline(never)
    private static func longDecimal(_ bytes: Span<UInt8>, _ range: ByteRange) -> Int? {
        // 18 digits always fit, leading zeros included.
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

    /// The decimal number in the eight bytes of `word` without the first `unused`, all digits in parallel.
    @inline(__always)
    private static func eightDigits(_ word: UInt64, unused: Int) -> Int? {
        // The last digit is the highest byte; bytes before the first digit become zeros.
        let shift = UInt64(truncatingIfNeeded: unused) &* 8
        var digits = ((word ^ 0x3030_3030_3030_3030) &>> shift) &<< shift
        // A byte over nine sets its highest bit; only such a byte can carry into the next one.
        guard (digits &+ 0x7676_7676_7676_7676 | digits) & 0x8080_8080_8080_8080 == 0 else { return nil }
        digits = digits &* 10 &+ digits &>> 8
        let pairs: UInt64 = 0x0000_00FF_0000_00FF
        let high = (digits & pairs) &* (100 &+ 1_000_000 &<< 32)
        let low = (digits &>> 16 & pairs) &* (1 &+ 10_000 &<< 32)
        return Int(truncatingIfNeeded: (high &+ low) &>> 32)
    }
}
