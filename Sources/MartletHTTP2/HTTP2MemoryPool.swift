internal import CNghttp2
internal import MartletCore

/// Blocks of memory for the sessions of one event loop, which allocate and free some for every stream.
///
/// Freed blocks are cached for the next stream of any session, so that idle connections hold none of them. A reference
/// without a reference count: the pool of a loop is never freed.
@safe package struct HTTP2MemoryPool {
    /// Multiples of 64 bytes up to 512, then powers of two up to 4096.
    private static let classes = 11
    private static let largest = 4096
    /// The size class stands before each block, which stays aligned for any type.
    private static let headerBytes = 16
    /// The size class of blocks that are not cached.
    private static let uncached = 255

    @safe private struct State: ~Copyable {
        /// The first free block of each size class; each begins with the address of the next.
        var free: InlineArray<11, UnsafeMutableRawPointer?>
        var cached = 0
        /// Memory for the texts of heads, which a session uses while it receives.
        var text = ByteBuffer()
        var offsets = FieldOffsetsList()
        /// Bytes that are cached at most.
        let cacheLimit: Int

        init(cacheLimit: Int) {
            unsafe free = InlineArray(repeating: nil)
            self.cacheLimit = cacheLimit
        }
    }

    private let state: UnsafeMutablePointer<State>

    /// - Parameter cacheLimit: how many bytes are cached at most; with 0 every block is allocated and freed by itself.
    package init(cacheLimit: Int = 1024 * 1024) {
        unsafe state = .allocate(capacity: 1)
        unsafe state.initialize(to: State(cacheLimit: cacheLimit))
    }

    /// Frees a pool that caches nothing.
    func destroy() {
        unsafe state.deinitialize(count: 1)
        unsafe state.deallocate()
    }

    /// Exchanges the memory of a writer without texts.
    func swapMemory(with writer: inout HeadWriter) {
        unsafe writer.swapMemory(&state.pointee.text, &state.pointee.offsets)
    }

    private init(context: UnsafeMutableRawPointer) {
        unsafe state = context.assumingMemoryBound(to: State.self)
    }

    /// The smallest size class for so many bytes.
    @inline(__always)
    private static func sizeClass(_ bytes: Int) -> Int {
        if bytes <= 512 { return max(bytes &- 1, 0) >> 6 }
        return bytes <= 1024 ? 8 : bytes <= 2048 ? 9 : bytes <= largest ? 10 : uncached
    }

    private static func size(_ sizeClass: Int) -> Int {
        sizeClass < 8 ? (sizeClass &+ 1) << 6 : 1024 << (sizeClass &- 8)
    }

    /// Allocates a block of at least so many bytes.
    @unsafe func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
        let sizeClass = HTTP2MemoryPool.sizeClass(bytes)
        if sizeClass < HTTP2MemoryPool.classes, let block = unsafe state.pointee.free[sizeClass] {
            unsafe state.pointee.free[sizeClass] = block.load(as: UnsafeMutableRawPointer?.self)
            unsafe state.pointee.cached &-= capacity(of: block)
            return unsafe block
        }
        return unsafe HTTP2MemoryPool.allocateFresh(bytes, sizeClass)
    }

    @inline(never)
    private static func allocateFresh(_ bytes: Int, _ sizeClass: Int) -> UnsafeMutableRawPointer {
        let size = sizeClass < classes ? size(sizeClass) : bytes
        let start = UnsafeMutableRawPointer.allocate(byteCount: headerBytes &+ size, alignment: headerBytes)
        unsafe start.storeBytes(of: sizeClass, as: Int.self)
        unsafe start.storeBytes(of: size, toByteOffset: 8, as: Int.self)
        return unsafe start + headerBytes
    }

    /// How many bytes a block has.
    @inline(__always) @unsafe
    func capacity(of block: UnsafeMutableRawPointer) -> Int { unsafe (block - 8).load(as: Int.self) }

    /// Frees a block.
    @unsafe func free(_ block: UnsafeMutableRawPointer) {
        let start = unsafe block - HTTP2MemoryPool.headerBytes
        let sizeClass = unsafe start.load(as: Int.self)
        guard sizeClass < HTTP2MemoryPool.classes,
            unsafe state.pointee.cached < state.pointee.cacheLimit
        else { return unsafe start.deallocate() }
        unsafe block.storeBytes(of: state.pointee.free[sizeClass], as: UnsafeMutableRawPointer?.self)
        unsafe state.pointee.free[sizeClass] = block
        unsafe state.pointee.cached &+= capacity(of: block)
    }

    // MARK: nghttp2

    /// nghttp2's allocator.
    var allocator: nghttp2_mem {
        unsafe nghttp2_mem(
            mem_user_data: state,
            malloc: { size, context in
                guard let context = unsafe context else { return nil }
                return unsafe HTTP2MemoryPool(context: context).allocate(size)
            },
            free: { block, context in
                guard let block = unsafe block, let context = unsafe context else { return }
                unsafe HTTP2MemoryPool(context: context).free(block)
            },
            calloc: { count, size, context in
                guard let context = unsafe context else { return nil }
                let (bytes, overflows) = count.multipliedReportingOverflow(by: size)
                guard !overflows else { return nil }
                let block = unsafe HTTP2MemoryPool(context: context).allocate(bytes)
                unsafe block.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
                return unsafe block
            },
            realloc: { block, size, context in
                guard let context = unsafe context else { return nil }
                let pool = unsafe HTTP2MemoryPool(context: context)
                guard let block = unsafe block else { return unsafe pool.allocate(size) }
                let capacity = unsafe pool.capacity(of: block)
                guard capacity < size else { return unsafe block }
                let larger = unsafe pool.allocate(size)
                unsafe larger.copyMemory(from: block, byteCount: capacity)
                unsafe pool.free(block)
                return unsafe larger
            })
    }
}

/// Body bytes of a stream that wait for flow control, in a block of a pool.
@safe struct BodyBuffer: ~Copyable {
    private var block: UnsafeMutableRawPointer?
    private var capacity = 0
    private var start = 0
    private var end = 0

    init() { unsafe block = nil }

    @inline(__always) var count: Int { end &- start }
    @inline(__always) var isEmpty: Bool { start == end }

    /// The waiting bytes; valid until the buffer is changed.
    @unsafe var bytes: UnsafeBufferPointer<UInt8> {
        guard let block = unsafe block, count > 0 else { return unsafe UnsafeBufferPointer(start: nil, count: 0) }
        return unsafe UnsafeBufferPointer(start: (block + start).assumingMemoryBound(to: UInt8.self), count: count)
    }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>, _ pool: HTTP2MemoryPool) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        if capacity &- end < bytes.count { makeRoom(for: bytes.count, pool) }
        guard let block = unsafe block else { return }
        unsafe (block + end).copyMemory(from: source, byteCount: bytes.count)
        end &+= bytes.count
    }

    @inline(never)
    private mutating func makeRoom(for extra: Int, _ pool: HTTP2MemoryPool) {
        let count = self.count
        let larger = unsafe pool.allocate(max(count &+ extra, min(capacity &* 2, 1024 * 1024)))
        if let block = unsafe block {
            unsafe larger.copyMemory(from: block + start, byteCount: count)
            unsafe pool.free(block)
        }
        unsafe block = larger
        capacity = unsafe pool.capacity(of: larger)
        start = 0
        end = count
    }

    mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= self.count)
        start &+= count
    }

    /// Empties the buffer and frees its block.
    mutating func release(_ pool: HTTP2MemoryPool) {
        start = 0
        end = 0
        capacity = 0
        guard let block = unsafe block else { return }
        unsafe pool.free(block)
        unsafe self.block = nil
    }
}
