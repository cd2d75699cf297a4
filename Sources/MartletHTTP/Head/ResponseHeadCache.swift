private import CHeadScan
internal import MartletCore

/// The bytes of the previous response head, so that an identical prefix is not parsed again.
///
/// Responses of one upstream differ little: in a date, a length, an entity tag. A parsed line depends on its bytes
/// alone, so the fields of the identical lines at the start are still valid.
struct ResponseHeadCache: ~Copyable {
    /// Longer heads are not cached.
    private static let limit = 1024

    private var text = ByteBuffer()
    private var method = Method.other
    /// Fields that were parsed from those bytes.
    private var fields = 0

    /// Whether `bytes` start with the whole cached head, parsed for the same request method.
    /// - Returns: its length in bytes, or 0.
    @inline(__always)
    func match(_ bytes: Span<UInt8>, _ method: Method) -> Int {
        let count = text.count
        guard count > 0, count <= bytes.count, method == self.method else { return 0 }
        return unsafe bytes.withUnsafeBufferPointer {
            unsafe martlet_same($0.baseAddress, text.bytes.baseAddress, count)
        }
            ? count : 0
    }

    /// The length of the common prefix with the cached head, and how many fields that head has.
    @inline(never)
    func commonPrefix(with bytes: Span<UInt8>) -> (bytes: Int, fields: Int) {
        let last = unsafe text.bytes.span
        let count = min(last.count, bytes.count)
        var index = 0
        while last.hasBlock(at: index), bytes.hasBlock(at: index) {
            let found = firstMatch(last.block(at: index) .!= bytes.block(at: index))
            if found < 16 { return (index &+ found, fields) }
            index &+= 16
        }
        while index < count, last[index] == bytes[index] { index &+= 1 }
        return (index, fields)
    }

    /// Stores the head of `count` bytes at the start of `bytes`; the first `shared` bytes are cached already.
    @inline(never)
    mutating func store(_ bytes: Span<UInt8>, count: Int, shared: Int, _ method: Method, _ fields: borrowing FieldList)
    {
        // Connection options are marked in the fields, and Set-Cookie is private to one client: neither is cached.
        guard count <= ResponseHeadCache.limit, !fields.hasConnectionOptions, !fields.has(.setCookie) else {
            return invalidate()
        }
        text.truncate(to: shared)
        unsafe bytes.withUnsafeBufferPointer { all in
            unsafe text.append(UnsafeBufferPointer(rebasing: all[text.count..<count]))
        }
        self.method = method
        self.fields = fields.count
    }

    /// Empties the cache.
    @inline(__always)
    mutating func invalidate() {
        text.removeAll()
        fields = 0
    }
}
