private import CHeadScan
internal import MartletCore

/// The bytes of the last head, by which the next one is known as far as it is the same.
///
/// The answers of an upstream differ little: in a date once a second, in a length, in a tag. What a line says depends on its
/// bytes alone, so lines that are the same from the first one on need not be read again: their fields are still there.
struct HeadMemory: ~Copyable {
    /// Longer heads are not kept.
    private static let limit = 1024

    private var text = ByteBuffer()
    private var method = Method.other
    /// How many fields were read from those bytes.
    private var fields = 0

    /// Whether `bytes` begin with all of the last head, which was the answer to a request of the same method.
    /// - Returns: how many bytes that is, or 0.
    @inline(__always)
    func whole(of bytes: Span<UInt8>, _ method: Method) -> Int {
        let count = text.count
        guard count > 0, count <= bytes.count, method == self.method else { return 0 }
        return unsafe bytes.withUnsafeBufferPointer {
            unsafe martlet_same($0.baseAddress, text.bytes.baseAddress, count)
        }
            ? count : 0
    }

    /// How many bytes are the same as those of the last head, and how many fields it had.
    @inline(never)
    func part(of bytes: Span<UInt8>) -> (bytes: Int, fields: Int) {
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

    /// Takes the head that `bytes` begin with and that was read whole; `shared` bytes of it are those of the last one.
    @inline(never)
    mutating func keep(_ bytes: Span<UInt8>, count: Int, shared: Int, _ method: Method, _ fields: borrowing FieldList) {
        // What a Connection field names is marked in the fields; what sets a cookie is nobody else's.
        guard count <= HeadMemory.limit, !fields.hasConnectionOptions, !fields.has(.setCookie) else { return forget() }
        text.truncate(to: shared)
        unsafe bytes.withUnsafeBufferPointer { all in
            unsafe text.append(UnsafeBufferPointer(rebasing: all[text.count..<count]))
        }
        self.method = method
        self.fields = fields.count
    }

    /// Nothing is known any more.
    @inline(__always)
    mutating func forget() {
        text.removeAll()
        fields = 0
    }
}
