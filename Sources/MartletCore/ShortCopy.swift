/// Inlined copies of short byte ranges, such as the parts of heads and log lines.
@usableFromInline enum ShortCopy {
    /// Copies `count` bytes between buffers that do not overlap; reads and writes nothing beyond them.
    ///
    /// Two possibly overlapping blocks cover every length between one block and two. A length known at compile time
    /// leaves nothing but the moves.
    @inlinable @inline(__always)
    static func copy(_ source: UnsafePointer<UInt8>, to destination: UnsafeMutablePointer<UInt8>, count: Int) {
        let from = unsafe UnsafeRawPointer(source)
        let to = UnsafeMutableRawPointer(destination)
        if count > 64 {
            unsafe to.copyMemory(from: from, byteCount: count)
        } else if count >= 16 {
            if count > 32 {
                unsafe move(from, to, SIMD2<UInt64>.self, 16)
                unsafe move(from, to, SIMD2<UInt64>.self, count &- 32)
            }
            unsafe move(from, to, SIMD2<UInt64>.self, 0)
            unsafe move(from, to, SIMD2<UInt64>.self, count &- 16)
        } else if count >= 8 {
            unsafe ends(from, to, UInt64.self, count &- 8)
        } else if count >= 4 {
            unsafe ends(from, to, UInt32.self, count &- 4)
        } else if count >= 2 {
            unsafe ends(from, to, UInt16.self, count &- 2)
        } else if count > 0 {
            unsafe destination.pointee = source.pointee
        }
    }

    /// Copies one block.
    @inlinable @inline(__always)
    static func move<Block: BitwiseCopyable>(
        _ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer, _ block: Block.Type, _ offset: Int
    ) {
        unsafe to.storeBytes(of: from.loadUnaligned(fromByteOffset: offset, as: block), toByteOffset: offset, as: block)
    }

    /// Copies the first block and the block at offset `last`.
    @inlinable @inline(__always)
    static func ends<Block: BitwiseCopyable>(
        _ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer, _ block: Block.Type, _ last: Int
    ) {
        unsafe move(from, to, block, 0)
        unsafe move(from, to, block, last)
    }
}
