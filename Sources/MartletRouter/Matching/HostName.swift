private import Glibc

/// The range of the host in the value of a `Host` field, without port, brackets and a trailing dot.
struct HostName {
    let start: Int
    let end: Int
    /// Whether it was in brackets: an IPv6 literal.
    let isBracketed: Bool

    /// - Returns: `nil` if no pattern could match: an empty host, an empty label, or a malformed port.
    init?(in authority: Span<UInt8>) {
        if authority.count > 0, authority[0] == UInt8(ascii: "[") {
            var end = 1
            while end < authority.count, authority[end] != UInt8(ascii: "]") { end &+= 1 }
            guard end < authority.count, Self.isPort(authority, from: end &+ 1) else { return nil }
            self.start = 1
            self.end = end
            self.isBracketed = true
        } else {
            guard var end = Self.endOfName(authority), Self.isPort(authority, from: end) else { return nil }
            if end > 0, authority[end &- 1] == .dot { end &-= 1 }
            guard end > 0 else { return nil }
            self.start = 0
            self.end = end
            self.isBracketed = false
        }
    }

    /// The offset of the first colon, or the end.
    /// - Returns: `nil` if a label before it is empty.
    @inline(__always)
    private static func endOfName(_ authority: Span<UInt8>) -> Int? {
        var offset = 0
        // Treat the position before the first byte as a dot, so that a leading dot is an empty label.
        var before: UInt64 = 0x80
        while offset < authority.count {
            let word = authority.word(at: offset)
            let colons = ByteWord.matches(of: .colon, in: word)
            let dots = ByteWord.matches(of: .dot, in: word)
            // Ignore dots after the colon: the port is checked separately.
            let relevant = colons == 0 ? dots : dots & ((colons & (0 &- colons)) &- 1)
            guard relevant & (relevant &<< 8 | before) == 0 else { return nil }
            if colons != 0 { return offset &+ colons.trailingZeroBitCount / 8 }
            before = dots &>> 56
            offset &+= 8
        }
        return authority.count
    }

    /// Whether the rest from `start` is empty, or a colon and digits; RFC 3986 §3.2.3 allows no digits.
    private static func isPort(_ authority: Span<UInt8>, from start: Int) -> Bool {
        guard start < authority.count else { return true }
        guard authority[start] == .colon else { return false }
        var index = start &+ 1
        while index < authority.count {
            guard authority[index].isDigit else { return false }
            index &+= 1
        }
        return true
    }
}

/// An IPv6 address as its 16 bytes, so that every spelling of one address is the same host.
struct IPv6Address: Hashable, Sendable {
    let bytes: InlineBytes

    /// 16 bytes as two words.
    struct InlineBytes: Hashable, Sendable {
        let high: UInt64
        let low: UInt64
    }

    /// Parses an address without brackets; zone ids are not supported.
    init?(_ text: Span<UInt8>, from start: Int, to end: Int) {
        // INET6_ADDRSTRLEN is 46 with its NUL.
        guard end > start, end &- start < 46 else { return nil }
        let words: InlineBytes? = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 46) { buffer in
            var index = 0
            while index < end &- start {
                let byte = text[start &+ index]
                guard byte != 0 else { return nil }
                unsafe buffer[index] = CChar(truncatingIfNeeded: byte)
                index &+= 1
            }
            unsafe buffer[index] = 0
            guard let base = buffer.baseAddress else { return nil }
            var address = in6_addr()
            guard unsafe inet_pton(AF_INET6, base, &address) == 1 else { return nil }
            return unsafe withUnsafeBytes(of: address) { raw in
                InlineBytes(
                    high: unsafe UInt64(bigEndian: raw.loadUnaligned(as: UInt64.self)),
                    low: unsafe UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
            }
        }
        guard let words else { return nil }
        bytes = words
    }

    init?(_ text: [UInt8]) { self.init(text.span, from: 0, to: text.count) }
}
