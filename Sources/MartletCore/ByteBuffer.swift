private import CLinux

/// A growable run of bytes with a read end and a write end; one owner, freed with it.
///
/// The appends are inlinable: they are what heads and log lines are made with, some hundred times a request.
/// Bytes are appended at the end and consumed from the front. Capacity is kept when it empties, until `release()`.
@safe @usableFromInline package struct ByteBuffer: ~Copyable {
    @usableFromInline internal var base: UnsafeMutablePointer<UInt8>?
    @usableFromInline internal var capacity = 0
    @usableFromInline internal var start = 0
    @usableFromInline internal var end = 0

    package init() { unsafe base = nil }

    package init(capacity: Int) {
        unsafe base = nil
        reserve(capacity)
    }

    deinit { unsafe base?.deallocate() }

    /// The bytes that wait to be consumed.
    @inlinable package var count: Int { end &- start }
    @inlinable package var isEmpty: Bool { start == end }

    /// The waiting bytes; valid until the buffer is changed.
    @inlinable @unsafe package var bytes: UnsafeBufferPointer<UInt8> {
        guard let base = unsafe base else { return unsafe UnsafeBufferPointer(start: nil, count: 0) }
        return unsafe UnsafeBufferPointer(start: base + start, count: end &- start)
    }

    /// Makes room for `extra` more bytes behind the end.
    @inlinable package mutating func reserve(_ extra: Int) {
        if capacity &- end >= extra { return }
        makeRoom(extra)
    }

    @inline(never)
    @usableFromInline internal mutating func makeRoom(_ extra: Int) {
        let count = self.count
        if let base = unsafe base, capacity >= count + extra {
            unsafe memmove(base, base + start, count)
        } else {
            var size = max(capacity * 2, 64)
            while size < count + extra { size *= 2 }
            let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
            if let old = unsafe base {
                unsafe memcpy(fresh, old + start, count)
                unsafe old.deallocate()
            }
            unsafe base = fresh
            capacity = size
        }
        start = 0
        end = count
    }

    /// Appends a run of bytes.
    @inlinable package mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        unsafe append(source, count: bytes.count)
    }

    /// Appends `count` bytes from `source`.
    @inlinable @unsafe package mutating func append(_ source: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        if let base = unsafe base { unsafe (base + end).update(from: source, count: count) }
        end &+= count
    }

    /// Appends one byte.
    @inlinable package mutating func append(_ byte: UInt8) {
        reserve(1)
        if let base = unsafe base { unsafe base[end] = byte }
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
    package mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
    }

    /// Appends a run of bytes with ASCII letters in lower case.
    package mutating func append(lowercasing bytes: UnsafeBufferPointer<UInt8>) {
        for index in bytes.indices {
            let byte = unsafe bytes[index]
            append(byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte)
        }
    }

    /// Appends a number in decimal digits.
    package mutating func append(decimal value: Int) {
        if value < 0 { append(45) }
        var rest = value.magnitude
        var bound: UInt = 10
        var count = 1
        while rest >= bound, count < 19 {
            bound &*= 10
            count &+= 1
        }
        if rest >= bound { count &+= 1 }
        reserve(count)
        end &+= count
        var place = end
        for _ in 0..<count {
            place &-= 1
            if let base = unsafe base { unsafe base[place] = UInt8(truncatingIfNeeded: rest % 10) &+ 48 }
            rest /= 10
        }
    }

    /// Appends eight lower-case hexadecimal digits, all at once.
    @inlinable package mutating func append(eightDigits value: UInt32) {
        var digits = UInt64(value)
        digits = (digits & 0xFFFF_0000) << 16 | digits & 0xFFFF
        digits = digits << 8 & 0x00FF_0000_00FF_0000 | digits & 0x0000_00FF_0000_00FF
        digits = digits << 4 & 0x0F00_0F00_0F00_0F00 | digits & 0x000F_000F_000F_000F
        // A digit over 9 carries into the next bit when 6 is added: 39 more takes it from ':' to 'a'.
        let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        digits = (digits &+ 0x3030_3030_3030_3030 &+ letters &* 39).bigEndian
        reserve(8)
        guard let base = unsafe base else { return }
        unsafe UnsafeMutableRawPointer(base + end).storeBytes(of: digits, as: UInt64.self)
        end &+= 8
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
    package mutating func truncate(to count: Int) { end = min(end, start &+ max(count, 0)) }

    /// Empties the buffer and keeps its memory.
    @inlinable package mutating func removeAll() {
        start = 0
        end = 0
    }

    /// Empties the buffer and gives its memory back.
    package mutating func release() {
        unsafe base?.deallocate()
        unsafe base = nil
        capacity = 0
        removeAll()
    }

    /// Lends at least `room` free bytes to `fill`, which answers how many it wrote.
    package mutating func fill(room: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        reserve(room)
        guard let base = unsafe base else { return 0 }
        let free = unsafe UnsafeMutableRawBufferPointer(start: base + end, count: capacity &- end)
        let written = unsafe fill(free)
        if written > 0 { end &+= min(written, capacity &- end) }
        return written
    }

    /// The bytes as an array; for tests and cold paths.
    package var array: [UInt8] { unsafe Array(bytes) }
}
