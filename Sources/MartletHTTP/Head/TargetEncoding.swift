package import MartletCore

/// Percent-encodes characters beyond ASCII in the target of a request, which many clients send as they are.
///
/// A target is encoded before anything reads it, so that routes, upstreams and logs have one spelling of it (RFC 3986
/// §2.1). What is not UTF-8 has no such spelling and is rejected.
package enum TargetEncoding {
    /// Appends a target, or a part of one, with every byte over 0x7F encoded.
    ///
    /// - Returns: `false` where those bytes are not UTF-8; what was appended is of no use then.
    package static func append(_ target: Span<UInt8>, to out: inout ByteBuffer) -> Bool {
        var utf8 = UTF8Run()
        for index in target.indices {
            let byte = target[index]
            if byte < 0x80 {
                guard utf8.isComplete else { return false }
                out.append(byte)
            } else {
                guard utf8.consume(byte) else { return false }
                append(byte, to: &out)
            }
        }
        return utf8.isComplete
    }

    /// Appends `%` and two hexadecimal digits.
    static func append(_ byte: UInt8, to out: inout ByteBuffer) {
        out.append(UInt8(ascii: "%"))
        out.append(digit(byte &>> 4))
        out.append(digit(byte & 0x0F))
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? value &+ 0x30 : value &+ 0x37 }

    /// Encodes the target in the request line that received bytes begin with, which a parser has rejected.
    ///
    /// - Parameter out: gets all bytes, with that line changed.
    /// - Returns: `false` where there is nothing to encode: the line is incomplete, it begins with no method, or what is
    ///   beyond ASCII in it is not UTF-8. A line that was encoded has nothing left to encode.
    package static func encodeRequestLine(of bytes: Span<UInt8>, into out: inout ByteBuffer) -> Bool {
        var start = 0
        while start < 4, bytes.hasLineEnd(at: start) { start &+= 2 }
        var space = start
        while space < bytes.count, space &- start <= RequestHead.maximumMethodBytes, Token.isMember(bytes[space]) {
            space &+= 1
        }
        let end = bytes.lineFeed(from: space)
        guard space > start, bytes.has(0x20, at: space), end < bytes.count else { return false }
        var isASCII = true
        for index in space..<end where bytes[index] >= 0x80 { isASCII = false }
        guard !isASCII else { return false }
        out.removeAll()
        out.reserve(bytes.count &+ 256)
        for index in start..<space { out.append(bytes[index]) }
        guard append(bytes.extracting(space..<end), to: &out) else { return false }
        unsafe bytes.extracting(end..<bytes.count).withUnsafeBufferPointer { unsafe out.append($0) }
        return true
    }
}
