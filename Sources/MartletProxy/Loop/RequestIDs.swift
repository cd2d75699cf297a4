internal import MartletCore

/// Makes the IDs of a loop's requests: a random 64-bit prefix of the loop, and a counter.
struct RequestIDs: ~Copyable {
    private let prefix: UInt64
    private var count: UInt64
    /// The ID of the last request, in 32 hexadecimal digits; empty before the first.
    private(set) var text = ByteBuffer(capacity: 64)

    init(prefix: UInt64, count: UInt64 = 0) {
        self.prefix = prefix
        self.count = count
    }

    /// Puts the ID of the next request into `text`.
    @inline(__always)
    mutating func next() {
        count &+= 1
        // The upper half of the counter changes once in four billion requests.
        if text.isEmpty || UInt32(truncatingIfNeeded: count) == 0 {
            text.removeAll()
            text.append(sixteenDigits: prefix)
            text.append(sixteenDigits: count)
        } else {
            text.truncate(to: 24)
            text.append(eightDigits: UInt32(truncatingIfNeeded: count))
        }
    }
}
