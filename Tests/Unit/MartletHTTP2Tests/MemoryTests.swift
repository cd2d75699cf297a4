import CNghttp2
import Testing

@testable import MartletHTTP2

@Suite struct StreamMapTests {
    @Test func `numbers are found by their stream through setting and removing`() {
        var map = StreamMap()
        var expected: [Int32: Int32] = [:]
        var generator = SystemRandomNumberGenerator()
        for step in 0..<20000 {
            let stream = Int32.random(in: 1...300, using: &generator) * 2 - 1
            if Bool.random(using: &generator) {
                map[stream] = Int32(step)
                expected[stream] = Int32(step)
            } else {
                map[stream] = nil
                expected[stream] = nil
            }
            let (count, isEmpty) = (map.count, map.isEmpty)
            #expect(count == expected.count && isEmpty == expected.isEmpty)
            if step % 64 == 0 {
                for id in stride(from: Int32(1), to: 600, by: 2) {
                    let number = map[id]
                    #expect(number == expected[id])
                }
                let values = map.values.sorted()
                #expect(values == expected.values.sorted())
            }
        }
    }
}

@Suite struct HTTP2MemoryPoolTests {
    @Test(arguments: [0, 1, 63, 64, 65, 512, 513, 1024, 2048, 4096, 4097, 100_000])
    func `a block has its bytes, and is used again if it is not too large`(bytes: Int) {
        let pool = HTTP2MemoryPool()
        let block = unsafe pool.allocate(bytes)
        let capacity = unsafe pool.capacity(of: block)
        let address = Int(bitPattern: block)
        #expect(capacity >= bytes && address % 16 == 0)
        unsafe block.initializeMemory(as: UInt8.self, repeating: 1, count: capacity)
        unsafe pool.free(block)
        let next = unsafe pool.allocate(bytes)
        let other = unsafe pool.allocate(bytes)
        let (isSame, isOther) = unsafe (next == block, other != next)
        #expect(isOther && (isSame || bytes > 4096))
        unsafe pool.free(next)
        unsafe pool.free(other)
    }

    @Test func `a pool without a cache frees every block`() {
        let pool = HTTP2MemoryPool(cacheLimit: 0)
        for _ in 0..<100 {
            let block = unsafe pool.allocate(64)
            unsafe pool.free(block)
        }
        pool.destroy()
    }

    @Test func `nghttp2's functions preserve the contents of a block`() throws {
        let pool = HTTP2MemoryPool()
        let allocator = unsafe pool.allocator
        let context = unsafe allocator.mem_user_data
        guard let zeros = unsafe allocator.calloc(10, 10, context) else { throw CancellationError() }
        for offset in 0..<100 {
            let byte = unsafe zeros.load(fromByteOffset: offset, as: UInt8.self)
            #expect(byte == 0)
        }
        unsafe zeros.initializeMemory(as: UInt8.self, repeating: 7, count: 100)
        guard let larger = unsafe allocator.realloc(zeros, 5000, context) else { throw CancellationError() }
        for offset in 0..<100 {
            let byte = unsafe larger.load(fromByteOffset: offset, as: UInt8.self)
            #expect(byte == 7)
        }
        unsafe allocator.free(larger, context)
        unsafe allocator.free(nil, context)
    }
}

@Suite struct BodyBufferTests {
    @Test func `bytes come out in the order in which they went in`() {
        let pool = HTTP2MemoryPool()
        var buffer = BodyBuffer()
        var expected: [UInt8] = []
        for step in 1..<200 {
            let bytes = [UInt8](repeating: UInt8(step & 255), count: step * 7 % 301)
            unsafe bytes.withUnsafeBufferPointer { unsafe buffer.append($0, pool) }
            expected += bytes
            let count = step * 13 % (expected.count + 1)
            buffer.consume(count)
            expected.removeFirst(count)
            let (held, left) = unsafe (Array(buffer.bytes), buffer.count)
            #expect(held == expected && left == expected.count)
        }
        buffer.release(pool)
        let isEmpty = buffer.isEmpty
        #expect(isEmpty)
    }
}
