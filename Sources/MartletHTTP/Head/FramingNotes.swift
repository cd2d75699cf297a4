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
    mutating func note(_ field: HeadField, _ bytes: Span<UInt8>, isHTTP10: Bool) -> HeadFailure? {
        switch field.known {
        case .contentLength:
            guard contentLength < 0 else { return .repeatedContentLength }
            guard !isChunked else { return .transferEncodingWithContentLength }
            guard let length = FramingNotes.decimal(bytes, field.value) else { return .badContentLength }
            contentLength = length
        case .transferEncoding:
            guard !isHTTP10 else { return .transferEncodingInHTTP10 }
            guard contentLength < 0 else { return .transferEncodingWithContentLength }
            guard !isChunked, bytes.spells("chunked", field.value) else { return .badTransferEncoding }
            isChunked = true
        case .connection:
            connections &+= 1
            connection = field.value
        default: break
        }
        return nil
    }

    /// A number of decimal digits only that fits.
    static func decimal(_ bytes: Span<UInt8>, _ range: ByteRange) -> Int? {
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
}
