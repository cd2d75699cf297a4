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

    private var owner: UnsafeMutablePointer<martlet_redis_reader>
    private let limits: Limits
    private var framing = RESPFraming()
    /// Bytes of the incomplete reply.
    private var pending = 0
    /// Whether the rest of the incomplete reply is dropped, because it is too large.
    private var isSkipping = false
    /// Replies that were complete before one was skipped, and that one.
    private var ready: [RedisReply] = []
    private var isMalformed = false

    package init(limits: Limits) throws(StoreError) {
        unsafe owner = try Self.makeOwner(limits)
        self.limits = limits
    }

    deinit { unsafe martlet_redis_reader_free(owner) }

    private static func makeOwner(_ limits: Limits) throws(StoreError) -> UnsafeMutablePointer<martlet_redis_reader> {
        guard let owner = unsafe martlet_redis_reader_create(Int32(clamping: limits.elements)) else {
            throw StoreError(code: .redisReplyMalformed, message: "out of memory for a RESP reader")
        }
        return unsafe owner
    }

    /// The maximum number of bytes to feed between calls of `next`.
    package static let chunkBytes = 16 * 1024

    /// Feeds at most `chunkBytes` bytes; call `next` until it returns `nil` before feeding more.
    package mutating func feed(_ chunk: UnsafeBufferPointer<UInt8>) throws(StoreError) {
        precondition(chunk.count <= RESPReader.chunkBytes)
        var rest = unsafe chunk[...]
        while unsafe rest.count > 0, !isMalformed {
            let part = unsafe UnsafeBufferPointer(rebasing: rest)
            guard let (count, isEnd) = unsafe framing.advance(part) else {
                // The reader finds out what is wrong.
                isMalformed = true
                return try unsafe parse(part)
            }
            pending += count
            if !isSkipping, pending > limits.bytes { try beginSkipping() }
            if !isSkipping { try unsafe parse(UnsafeBufferPointer(rebasing: part.prefix(count))) }
            if isEnd {
                if isSkipping { ready.append(.tooLarge) }
                (isSkipping, pending) = (false, 0)
            }
            unsafe rest = rest.dropFirst(count)
        }
    }

    private mutating func parse(_ bytes: UnsafeBufferPointer<UInt8>) throws(StoreError) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        let status = unsafe base.withMemoryRebound(to: CChar.self, capacity: bytes.count) { text in
            unsafe redisReaderFeed(owner.pointee.reader, text, bytes.count)
        }
        guard status == REDIS_OK else { throw RESPReader.malformed }
    }

    /// Forgets what was parsed of a reply that is too large; those before it are kept.
    private mutating func beginSkipping() throws(StoreError) {
        while let reply = try parsed() { ready.append(reply) }
        let new = unsafe try Self.makeOwner(limits)
        unsafe martlet_redis_reader_free(owner)
        unsafe owner = new
        isSkipping = true
    }

    /// The next complete reply; `nil` if more bytes are needed. One that is larger than the limit is `tooLarge`.
    /// - Throws: `redis.reply_malformed`; the reader cannot be used afterwards.
    package mutating func next() throws(StoreError) -> RedisReply? {
        if !ready.isEmpty { return ready.removeFirst() }
        if let reply = try parsed() { return reply }
        guard !isMalformed else { throw RESPReader.malformed }
        return nil
    }

    private func parsed() throws(StoreError) -> RedisReply? {
        var raw: UnsafeMutableRawPointer?
        guard unsafe redisReaderGetReply(owner.pointee.reader, &raw) == REDIS_OK else { throw RESPReader.malformed }
        guard let raw = unsafe raw else { return nil }
        defer { unsafe freeReplyObject(raw) }
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
