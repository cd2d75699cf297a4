/// The next element of a chunked body.
package enum ChunkEvent: Sendable {
    /// Content, possibly only a part of a chunk.
    case data(ByteRange)
    /// One field of the trailer section.
    case trailer(HeadField)
    /// The body is complete; the next message follows.
    case end
    /// Buffer the bytes from `offset` on and call again with more appended.
    case needMore
    case failure(HeadError)
}
