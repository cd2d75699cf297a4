/// What the next bytes of a chunked body are.
package enum ChunkEvent: Sendable {
    /// Content, perhaps only a part of a chunk.
    case data(ByteRange)
    /// One field of the trailer section.
    case trailer(HeadField)
    /// The body is complete; what follows is the next message.
    case end
    /// Keep the bytes from `offset` on and call again with more behind them.
    case needMore
    case failure(HeadFailure)
}
