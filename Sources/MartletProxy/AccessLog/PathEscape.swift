internal import MartletCore

/// Bytes of a path that lines cannot have as they are: those that JSON strings must escape (quotes, backslashes, control
/// bytes), for the log non-ASCII bytes, and `_`, which every token of the gateway has in its prefix.
enum PathEscape {
    /// Whether a path has such a byte; checks eight bytes at a time, in blocks that may overlap.
    @inline(__always)
    static func isNeeded(by path: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let base = path.baseAddress else { return false }
        let bytes = unsafe UnsafeRawPointer(base)
        let count = path.count
        if count >= 8 {
            var offset = 0
            while offset < count &- 8 {
                if isIn(unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) { return true }
                offset &+= 8
            }
            return isIn(unsafe bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self))
        }
        if count >= 4 {
            let first = unsafe bytes.loadUnaligned(as: UInt32.self)
            let last = unsafe bytes.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
            return isIn(UInt64(first) << 32 | UInt64(last))
        }
        if count >= 2 {
            let first = unsafe bytes.loadUnaligned(as: UInt16.self)
            let last = unsafe bytes.loadUnaligned(fromByteOffset: count &- 2, as: UInt16.self)
            return isIn(0x0000_0001_0000_0001 &* (UInt64(first) << 16 | UInt64(last)))
        }
        return count == 1 && isIn(0x0101_0101_0101_0101 &* UInt64(unsafe base.pointee))
    }

    /// Whether one of eight bytes is such a byte; borrows and carries between bytes only arise from one that is.
    @inline(__always)
    private static func isIn(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quotes = word ^ ones &* 0x22
        let slashes = word ^ ones &* 0x5C
        let prefixes = word ^ ones &* 0x5F
        let below = (word &- ones &* 0x20) | (quotes &- ones) | (slashes &- ones) | (prefixes &- ones)
        return (below | word | (word &+ ones)) & (ones &* 0x80) != 0
    }
}

extension ByteBuffer {
    /// Appends a path without the gateway's own tokens, escaping what JSON requires, and with question marks for other
    /// non-printable bytes.
    ///
    /// Only paths and notes need it: every other text is the gateway's own, or a validated token or host. The buffer is passed by
    /// value, in and out, so that its bounds stay in registers where this is not called.
    @inline(never)
    consuming func appending(escaped path: UnsafeBufferPointer<UInt8>, maximumBytes: Int = .max) -> ByteBuffer {
        for byte in unsafe OwnToken.masked(path).prefix(maximumBytes) {
            if byte == 0x22 || byte == 0x5C { append(0x5C as UInt8) }
            append(byte < 0x20 || byte > 0x7E ? 0x3F : byte)
        }
        return self
    }
}
