private import CHiredis
package import MartletCore

/// An incremental RESP2 reply parser: the hiredis reader with limits on the size of a reply.
@safe package struct RESPReader: ~Copyable {
    /// The maximum size of one reply; hiredis itself limits nesting to 7 levels.
    package struct Limits: Sendable {
        /// Encoded bytes of one reply.
        package var bytes = 1024 * 1024
        /// Elements of one array.
        package var elements = 65_536

        package init() {}
    }

    private let owner: UnsafeMutablePointer<martlet_redis_reader>
    private let limits: Limits
    /// Bytes of the incomplete reply.
    private var pending = 0

    package init(limits: Limits) throws(StoreError) {
        guard let owner = unsafe martlet_redis_reader_create(Int32(clamping: limits.elements)) else {
            throw StoreError(code: .redisReplyMalformed, message: "out of memory for a RESP reader")
        }
        unsafe self.owner = owner
        self.limits = limits
    }

    deinit { unsafe martlet_redis_reader_free(owner) }

    /// The maximum number of bytes to feed between calls of `next`.
    package static let chunkBytes = 16 * 1024

    /// Feeds at most `chunkBytes` bytes; call `next` until it returns `nil` before feeding more.
    package mutating func feed(_ chunk: UnsafeBufferPointer<UInt8>) throws(StoreError) {
        precondition(chunk.count <= RESPReader.chunkBytes)
        guard let base = chunk.baseAddress, chunk.count > 0 else { return }
        let status = unsafe base.withMemoryRebound(to: CChar.self, capacity: chunk.count) { text in
            unsafe redisReaderFeed(owner.pointee.reader, text, chunk.count)
        }
        guard status == REDIS_OK else { throw RESPReader.malformed }
        pending += chunk.count
    }

    /// The next complete reply; `nil` if more bytes are needed.
    /// - Throws: `redis.reply_malformed` or `redis.reply_too_large`; the reader cannot be used afterwards.
    package mutating func next() throws(StoreError) -> RedisReply? {
        var raw: UnsafeMutableRawPointer?
        guard unsafe redisReaderGetReply(owner.pointee.reader, &raw) == REDIS_OK else { throw RESPReader.malformed }
        guard let raw = unsafe raw else {
            guard pending <= limits.bytes else {
                throw StoreError(code: .redisReplyTooLarge, message: "reply larger than \(limits.bytes) bytes")
            }
            return nil
        }
        defer { unsafe freeReplyObject(raw) }
        let reader = unsafe owner.pointee.reader.pointee
        pending = unsafe reader.len > reader.pos ? reader.len &- reader.pos : 0
        return unsafe RESPReader.reply(raw.assumingMemoryBound(to: redisReply.self))
    }

    private static let malformed = StoreError(
        code: .redisReplyMalformed, message: "malformed reply, or one that exceeds the limits")

    /// Copies a reply; hiredis limits the recursion depth.
    private static func reply(_ raw: UnsafePointer<redisReply>) -> RedisReply {
        let reply = unsafe raw.pointee
        switch unsafe reply.type {
        case REDIS_REPLY_STRING: return .bytes(unsafe text(reply))
        case REDIS_REPLY_STATUS: return .status(String(decoding: unsafe text(reply), as: UTF8.self))
        case REDIS_REPLY_ERROR:
            let text = unsafe text(reply)
            return RedisRedirect(text).map { .redirect($0) } ?? .error(kind: RedisErrorReply.kind(of: text))
        case REDIS_REPLY_INTEGER: return .integer(unsafe reply.integer)
        case REDIS_REPLY_ARRAY:
            var elements: [RedisReply] = []
            for index in 0..<Int(unsafe reply.elements) {
                guard let element = unsafe reply.element?[index] else { continue }
                unsafe elements.append(self.reply(element))
            }
            return .array(elements)
        default: return .nothing
        }
    }

    private static func text(_ reply: redisReply) -> [UInt8] {
        guard let start = unsafe reply.str else { return [] }
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: Int(reply.len))
        return unsafe Array(bytes)
    }
}
