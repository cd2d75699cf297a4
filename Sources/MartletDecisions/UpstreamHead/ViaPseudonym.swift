internal import MartletCore
package import MartletHTTP
internal import MartletRouter
internal import MartletTraffic

/// The name with which a gateway signs in `Via` what it forwards, so that it knows a request that comes back.
///
/// It is the same for all instances with the same routes and upstreams, and differs from that of another gateway in front
/// of them or behind.
package struct ViaPseudonym: Sendable, BitwiseCopyable {
    /// What precedes the digits.
    private static let prefix = Array("martlet-".utf8)
    private static let digitCount = 8

    /// Hexadecimal digits, the first one in the lowest byte.
    package let digits: UInt64

    /// - Parameters:
    ///   - routes: their names; nothing that is secret.
    ///   - upstreams: whose names and endpoints count.
    package init(routes: [String], upstreams: [Upstream]) {
        var text = routes
        for upstream in upstreams { text += [upstream.name] + upstream.endpoints.map(EndpointText.url) }
        let hash = RendezvousHash.hash(text.joined(separator: "\n").utf8)
        digits = (0..<Self.digitCount).reduce(0) { digits, index in
            let digit = (hash >> UInt64(index * 4)) & 15
            return digits | (digit < 10 ? digit + 48 : digit + 87) << UInt64(index * 8)
        }
    }

    /// As it is written.
    package var text: String {
        String(decoding: Self.prefix + (0..<Self.digitCount).map { digit($0) }, as: UTF8.self)
    }

    private func digit(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: digits >> UInt64(index * 8)) }

    /// Whether it is in the value of a `Via` field.
    package func isIn(_ value: Span<UInt8>) -> Bool {
        let name = Array(text.utf8)
        guard value.count >= name.count else { return false }
        for start in 0...value.count - name.count {
            var index = 0
            while index < name.count, value[start + index] == name[index] { index += 1 }
            if index == name.count { return true }
        }
        return false
    }

    /// Whether this gateway, or another instance of it, has forwarded a request already.
    /// - Parameter head: lent `inout`, though it is only read.
    @inline(never)
    package func hasSigned(_ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in 0..<head.fields.count where head.fields[index].known == .via {
            if unsafe isIn(bytes[head.fields[index].value].span) { return true }
        }
        return false
    }
}
