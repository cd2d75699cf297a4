private import CHiredis
package import MartletCore

/// RESP2 replies out of a stream of bytes, in any pieces: hiredis' reader with bounds on what a reply may hold.
@safe package struct RESPReader: ~Copyable {
    /// What one reply may cost.
    ///
    /// hiredis itself ends nesting at 7 levels.
    package struct Limits: Sendable {
        /// Bytes of a reply on the wire.
        package var bytes = 1024 * 1024
        /// Elements of one array.
        package var elements = 65_536

        package init() {}
    }

    private let owner: UnsafeMutablePointer<martlet_redis_reader>
    private let limits: Limits
    /// Bytes of the reply that is not complete yet.
    private var pending = 0

    package init(limits: Limits) throws(StoreError) {
        guard let owner = unsafe martlet_redis_reader_create(Int32(clamping: limits.elements)) else {
            throw StoreError(code: .redisReplyMalformed, message: "no memory for a reader")
        }
        unsafe self.owner = owner
        self.limits = limits
    }

    deinit { unsafe martlet_redis_reader_free(owner) }

    /// Bytes that the reader takes before the replies in them are asked for.
    package static let pieceBytes = 16 * 1024

    /// Takes at most `pieceBytes` more bytes; call `next` until it has no more before the following piece.
    package mutating func feed(_ piece: UnsafeBufferPointer<UInt8>) throws(StoreError) {
        precondition(piece.count <= RESPReader.pieceBytes)
        guard let base = piece.baseAddress, piece.count > 0 else { return }
        let status = unsafe base.withMemoryRebound(to: CChar.self, capacity: piece.count) { text in
            unsafe redisReaderFeed(owner.pointee.reader, text, piece.count)
        }
        guard status == REDIS_OK else { throw RESPReader.malformed }
        pending += piece.count
    }

    /// The next complete reply.
    /// - Throws: `redis.reply_malformed` or `redis.reply_too_large`; the reader is then of no more use.
    package mutating func next() throws(StoreError) -> RedisReply? {
        var raw: UnsafeMutableRawPointer?
        guard unsafe redisReaderGetReply(owner.pointee.reader, &raw) == REDIS_OK else { throw RESPReader.malformed }
        guard let raw = unsafe raw else {
            guard pending <= limits.bytes else {
                throw StoreError(code: .redisReplyTooLarge, message: "a reply is over \(limits.bytes) bytes")
            }
            return nil
        }
        defer { unsafe freeReplyObject(raw) }
        let reader = unsafe owner.pointee.reader.pointee
        pending = unsafe reader.len > reader.pos ? reader.len &- reader.pos : 0
        return unsafe RESPReader.reply(raw.assumingMemoryBound(to: redisReply.self))
    }

    private static let malformed = StoreError(
        code: .redisReplyMalformed, message: "what came is not the Redis protocol, or beyond its bounds")

    /// Copies a reply; recursion ends with hiredis' own nesting limit.
    private static func reply(_ raw: UnsafePointer<redisReply>) -> RedisReply {
        let reply = unsafe raw.pointee
        switch unsafe reply.type {
        case REDIS_REPLY_STRING: return .bytes(unsafe text(reply))
        case REDIS_REPLY_STATUS: return .status(String(decoding: unsafe text(reply), as: UTF8.self))
        case REDIS_REPLY_ERROR: return .error(kind: RedisFailure.kind(of: unsafe text(reply)))
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
