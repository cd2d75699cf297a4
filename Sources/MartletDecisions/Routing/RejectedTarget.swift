package import MartletCore
package import MartletHTTP

/// The target of a rejected request as it is logged: as received, escaped and truncated, without the query and without
/// user info.
package struct RejectedTarget {
    private static let maximumBytes = 256
    private static let maximumMethodBytes = 32

    package let method: ByteRange
    package let target: ByteRange

    /// Finds method and target in a head that could not be parsed; `nil` where it does not begin with a method and a
    /// space.
    package init?(_ head: Span<UInt8>) {
        var end = 0
        while end < head.count, end <= RejectedTarget.maximumMethodBytes, RejectedTarget.isMethod(head[end]) {
            end += 1
        }
        guard end > 0, end < head.count, head[end] == 0x20 else { return nil }
        method = ByteRange(from: 0, to: end)
        var stop = end + 1
        while stop < head.count, head[stop] != 0x0D, head[stop] != 0x0A { stop += 1 }
        // Without the version; a target with spaces ends at the last space before it.
        var space = stop
        while space > end + 1, head[space - 1] != 0x20 { space -= 1 }
        let version = Array("HTTP/".utf8)
        let hasVersion =
            space > end + 1 && stop - space >= version.count
            && version.indices.allSatisfy { head[space + $0] == version[$0] }
        target = ByteRange(from: end + 1, to: hasVersion ? space - 1 : stop)
    }

    /// Letters and dashes: no method in use has other characters.
    private static func isMethod(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 || byte == 0x2D }

    /// Appends a target; bytes that are not printable ASCII become `%XX`, and a query is cut
    /// with its question mark.
    package static func append(_ target: UnsafeBufferPointer<UInt8>, to buffer: inout ByteBuffer) {
        let end = buffer.count + maximumBytes
        for index in unsafe withoutUser(target)..<target.count {
            let byte = unsafe target[index]
            if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { return }
            let isPlain = byte > 0x20 && byte < 0x7F
            guard buffer.count + (isPlain ? 1 : 3) <= end else { return }
            if isPlain {
                buffer.append(byte)
            } else {
                buffer.append(UInt8(ascii: "%"))
                buffer.append(digit(byte >> 4))
                buffer.append(digit(byte & 0x0F))
            }
        }
    }

    /// The offset after the user info: behind the last `@` before the path of a target with a host.
    private static func withoutUser(_ target: UnsafeBufferPointer<UInt8>) -> Int {
        guard unsafe target.first != UInt8(ascii: "/") else { return 0 }
        var (start, slashes) = (0, 0)
        for index in target.indices {
            let byte = unsafe target[index]
            if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { break }
            if byte == UInt8(ascii: "/") { slashes += 1 }
            if slashes > 2 { break }
            if byte == UInt8(ascii: "@") { start = index + 1 }
        }
        return start
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? value &+ 0x30 : value &+ 0x37 }
}
