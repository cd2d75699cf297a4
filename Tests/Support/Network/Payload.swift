/// Bytes that are the same in every run and repeat nowhere near by, so that a shift or a swap shows.
package enum Payload {
    package static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            for index in 0..<count {
                if index & 7 == 0 {
                    state ^= state << 13
                    state ^= state >> 7
                    state ^= state << 17
                }
                unsafe buffer[index] = UInt8(truncatingIfNeeded: state >> UInt64((index & 7) * 8))
            }
            filled = count
        }
    }

    /// The bytes in chunked coding, in chunks of a size.
    package static func chunked(_ bytes: [UInt8], size: Int, trailers: String = "") -> [UInt8] {
        var coded: [UInt8] = []
        coded.reserveCapacity(bytes.count + bytes.count / size * 10 + 64)
        var index = 0
        while index < bytes.count {
            let end = min(index + size, bytes.count)
            coded += Array("\(String(end - index, radix: 16))\r\n".utf8)
            coded += bytes[index..<end]
            coded += [13, 10]
            index = end
        }
        return coded + Array("0\r\n\(trailers)\r\n".utf8)
    }
}
