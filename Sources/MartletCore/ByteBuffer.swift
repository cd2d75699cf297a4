private import CLinux

/// A growable byte buffer with a read and a write offset, which owns its memory.
///
/// Bytes are appended at the end and consumed from the front. Capacity is retained until `release()`.
///
/// The appends are inlined: heads and log lines use about a hundred per request, and each is one comparison and the
/// stores. Code that appends a lot takes the buffer out of its owner (``take()``) and puts it back: the compiler then
/// keeps the offsets of the local in registers, because growing, too, gets them by value.
// @unchecked Sendable: not copyable, and nothing else refers to its memory.
@safe @frozen @usableFromInline package struct ByteBuffer: ~Copyable, @unchecked Sendable {
    /// Without memory (`capacity` is 0) a non-null pointer that is never dereferenced, which saves checks for `nil`.
    @usableFromInline internal var base: UnsafeMutablePointer<UInt8>
    @usableFromInline internal var capacity = 0
    @usableFromInline internal var start = 0
    @usableFromInline internal var end = 0

    @inlinable @inline(__always) package init() { unsafe base = ByteBuffer.dangling }

    package init(capacity: Int) {
        self.init()
        reserve(capacity)
    }

    @inlinable deinit {
        if capacity > 0 { unsafe base.deallocate() }
    }

    @inlinable @inline(__always) static var dangling: UnsafeMutablePointer<UInt8> {
        unsafe UnsafeMutablePointer(bitPattern: 64).unsafelyUnwrapped
    }

    /// The number of unread bytes.
    @inlinable package var count: Int { end &- start }
    @inlinable package var isEmpty: Bool { start == end }

    /// The unread bytes; valid until the buffer is changed.
    @inlinable @unsafe package var bytes: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: base + start, count: end &- start)
    }

    /// Reserves capacity for `extra` more bytes at the end.
    @inlinable @inline(__always) package mutating func reserve(_ extra: Int) {
        if capacity &- end >= extra { return }
        let grown = unsafe ByteBuffer.grow(base, capacity, start, end, extra)
        unsafe base = grown.base
        capacity = unsafe grown.capacity
        end = end &- start
        start = 0
    }

    /// Moves the unread bytes to the front of this memory or of a larger allocation, so that `extra` more fit.
    @inline(never)
    @usableFromInline internal static func grow(
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

    /// Moves the bytes and their memory out; leaves an empty buffer without memory.
    @inlinable @inline(__always) package mutating func take() -> ByteBuffer {
        var taken = ByteBuffer()
        swap(&self, &taken)
        return taken
    }

    /// Appends bytes.
    @inlinable @inline(__always) package mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        unsafe append(source, count: bytes.count)
    }

    /// Appends `count` bytes from `source`.
    @inlinable @inline(__always) @unsafe
    package mutating func append(_ source: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        unsafe ShortCopy.copy(source, to: base + end, count: count)
        end &+= count
    }

    /// Appends one byte.
    @inlinable @inline(__always) package mutating func append(_ byte: UInt8) {
        reserve(1)
        unsafe base[end] = byte
        end &+= 1
    }

    /// Appends a string literal.
    @inlinable @inline(__always) package mutating func append(_ text: StaticString) {
        unsafe append(text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Appends the UTF-8 bytes of a string.
    package mutating func append(text: String) {
        var text = text
        text.withUTF8 { unsafe append($0) }
    }

    /// Appends the bytes of an array.
    @inlinable @inline(__always) package mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
    }

    /// Appends bytes with ASCII letters in lowercase.
    package mutating func append(lowercasing bytes: UnsafeBufferPointer<UInt8>) {
        for index in bytes.indices {
            let byte = unsafe bytes[index]
            append(byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte)
        }
    }

    /// Appends a number in lowercase hexadecimal digits, without leading zeros.
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

    /// Keeps the first `count` unread bytes and drops the rest.
    @inlinable package mutating func truncate(to count: Int) { end = min(end, start &+ max(count, 0)) }

    /// Empties the buffer and retains its memory.
    @inlinable package mutating func removeAll() {
        start = 0
        end = 0
    }

    /// Empties the buffer and frees its memory.
    @inlinable @inline(__always) package mutating func release() {
        if capacity > 0 { releaseMemory() }
    }

    @inline(never)
    @usableFromInline internal mutating func releaseMemory() {
        unsafe base.deallocate()
        unsafe base = ByteBuffer.dangling
        capacity = 0
        removeAll()
    }

    /// Calls `fill` with at least `minimum` free bytes; it returns how many it wrote, or −1.
    package mutating func fill(capacity minimum: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        reserve(minimum)
        let free = unsafe UnsafeMutableRawBufferPointer(start: base + end, count: capacity &- end)
        let written = unsafe fill(free)
        if written > 0 { end &+= min(written, capacity &- end) }
        return written
    }

    /// The unread bytes as an array; for tests and cold paths.
    package var array: [UInt8] { unsafe Array(bytes) }
}
