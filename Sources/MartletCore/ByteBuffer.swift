private import CLinux

/// A growable run of bytes with a read end and a write end; one owner, freed with it.
///
/// Bytes are appended at the end and consumed from the front. Capacity is kept when it empties, until `release()`.
///
/// The appends are inlined: they are what heads and log lines are made with, some hundred times a request, and each is one
/// comparison and the moves. What appends much takes the buffer out of its owner (``take()``) and puts it back: the compiler
/// then keeps a local's ends in registers, because growing, too, gets them by value.
// @unchecked Sendable: nothing shares its memory, and there is one of it; who gives it away has it no more.
@safe @usableFromInline package struct ByteBuffer: ~Copyable, @unchecked Sendable {
    /// Where there is no memory yet (`capacity` is 0), a place that is not read or written: nothing has to ask for `nil`.
    @usableFromInline internal var base: UnsafeMutablePointer<UInt8>
    @usableFromInline internal var capacity = 0
    @usableFromInline internal var start = 0
    @usableFromInline internal var end = 0

    @inlinable @inline(__always) package init() { unsafe base = ByteBuffer.nowhere }

    package init(capacity: Int) {
        self.init()
        reserve(capacity)
    }

    @inlinable deinit {
        if capacity > 0 { unsafe base.deallocate() }
    }

    @inlinable @inline(__always) static var nowhere: UnsafeMutablePointer<UInt8> {
        unsafe UnsafeMutablePointer(bitPattern: 64).unsafelyUnwrapped
    }

    /// The bytes that wait to be consumed.
    @inlinable package var count: Int { end &- start }
    @inlinable package var isEmpty: Bool { start == end }

    /// The waiting bytes; valid until the buffer is changed.
    @inlinable @unsafe package var bytes: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: base + start, count: end &- start)
    }

    /// Makes room for `extra` more bytes behind the end.
    @inlinable @inline(__always) package mutating func reserve(_ extra: Int) {
        if capacity &- end >= extra { return }
        let room = unsafe ByteBuffer.room(base, capacity, start, end, extra)
        unsafe base = room.base
        capacity = unsafe room.capacity
        end = end &- start
        start = 0
    }

    /// Moves waiting bytes to the front of their memory, or of a larger one, so that `extra` more fit.
    @inline(never)
    @usableFromInline internal static func room(
        _ base: UnsafeMutablePointer<UInt8>, _ capacity: Int, _ start: Int, _ end: Int, _ extra: Int
    ) -> (base: UnsafeMutablePointer<UInt8>, capacity: Int) {
        let count = end - start
        if capacity >= count + extra {
            unsafe memmove(base, base + start, count)
            return unsafe (base, capacity)
        }
        var size = max(capacity * 2, 64)
        while size < count + extra { size *= 2 }
        let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
        if capacity > 0 {
            unsafe memcpy(fresh, base + start, count)
            unsafe base.deallocate()
        }
        return unsafe (fresh, size)
    }

    /// The buffer with all its bytes and memory; what stays is an empty one without memory.
    @inlinable @inline(__always) package mutating func take() -> ByteBuffer {
        var taken = ByteBuffer()
        swap(&self, &taken)
        return taken
    }

    /// Appends a run of bytes.
    @inlinable @inline(__always) package mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        unsafe append(source, count: bytes.count)
    }

    /// Appends `count` bytes from `source`.
    @inlinable @inline(__always) @unsafe
    package mutating func append(_ source: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        unsafe ShortRun.copy(source, to: base + end, count: count)
        end &+= count
    }

    /// Appends one byte.
    @inlinable @inline(__always) package mutating func append(_ byte: UInt8) {
        reserve(1)
        unsafe base[end] = byte
        end &+= 1
    }

    /// Appends a text of ours; literals come here.
    @inlinable @inline(__always) package mutating func append(_ text: StaticString) {
        unsafe append(text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Appends the UTF-8 of a text that is not a literal.
    package mutating func append(text: String) {
        var text = text
        text.withUTF8 { unsafe append($0) }
    }

    /// Appends the bytes of an array.
    @inlinable @inline(__always) package mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
    }

    /// Appends a run of bytes with ASCII letters in lower case.
    package mutating func append(lowercasing bytes: UnsafeBufferPointer<UInt8>) {
        for index in bytes.indices {
            let byte = unsafe bytes[index]
            append(byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte)
        }
    }

    /// Appends a number in lower-case hexadecimal digits, without leading zeros.
    package mutating func append(hexadecimal value: UInt) {
        var shift = value == 0 ? 0 : (UInt.bitWidth &- value.leadingZeroBitCount &- 1) & ~3
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: (value >> UInt(shift)) & 15)
            append(digit < 10 ? digit &+ 48 : digit &+ 87)
            shift &-= 4
        }
    }

    /// Drops `count` bytes from the front.
    @inlinable package mutating func consume(_ count: Int) {
        start = min(start &+ count, end)
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Keeps the first `count` waiting bytes and drops what is behind them.
    @inlinable package mutating func truncate(to count: Int) { end = min(end, start &+ max(count, 0)) }

    /// Empties the buffer and keeps its memory.
    @inlinable package mutating func removeAll() {
        start = 0
        end = 0
    }

    /// Empties the buffer and gives its memory back.
    package mutating func release() {
        if capacity > 0 { unsafe base.deallocate() }
        unsafe base = ByteBuffer.nowhere
        capacity = 0
        removeAll()
    }

    /// Lends at least `room` free bytes to `fill`, which answers how many it wrote.
    package mutating func fill(room: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        reserve(room)
        let free = unsafe UnsafeMutableRawBufferPointer(start: base + end, count: capacity &- end)
        let written = unsafe fill(free)
        if written > 0 { end &+= min(written, capacity &- end) }
        return written
    }

    /// The bytes as an array; for tests and cold paths.
    package var array: [UInt8] { unsafe Array(bytes) }
}
