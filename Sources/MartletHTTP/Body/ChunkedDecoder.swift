/// Decodes a chunked body (RFC 9112 §7.1), strictly: CRLF only, sizes that fit, extensions bounded and dropped.
///
/// Only the sizes of an upstream may have blanks behind them (RFC 9112 §7.1.1 permits none).
package struct ChunkedDecoder: Sendable {
    private enum State { case size, data, dataEnd, trailers, done }

    private static let maximumSizeDigits = 16
    private static let maximumTrailerFields = 64
    /// Bytes of extensions that may accumulate beyond what the accompanying data justifies.
    private static let maximumExcess = 16 * 1024

    private let maximumExtensionBytes: Int
    private let maximumTrailerBytes: Int
    private let isUpstream: Bool
    private var state = State.size
    private var remaining = 0
    private var excess = 0
    private var trailerBytes = 0
    private var trailerFields = 0

    /// - Parameters:
    ///   - maximumExtensionBytes: of one chunk.
    ///   - maximumTrailerBytes: of the whole trailer section.
    ///   - isUpstream: whether failures are the upstream's (`upstream.…`).
    package init(maximumExtensionBytes: Int = 256, maximumTrailerBytes: Int = 8192, isUpstream: Bool = false) {
        self.maximumExtensionBytes = maximumExtensionBytes
        self.maximumTrailerBytes = maximumTrailerBytes
        self.isUpstream = isUpstream
    }

    /// Decodes from `offset` and advances it.
    package mutating func next(_ bytes: Span<UInt8>, from offset: inout Int) -> ChunkEvent {
        while offset >= 0 && offset < bytes.count {
            switch state {
            case .size:
                switch readSize(bytes, at: offset) {
                case .next(let next): offset = next
                case .incomplete: return .needMore
                case .failure(let failure): return .failure(isUpstream ? failure.upstream : failure)
                }
            case .data:
                let range = ByteRange(start: offset, count: min(remaining, bytes.count &- offset))
                remaining &-= range.count
                offset = range.end
                if remaining == 0 { state = .dataEnd }
                return .data(range)
            case .dataEnd:
                switch FieldLine.readEnd(bytes, at: offset, otherwise: .badChunk) {
                case .next(let next): offset = next
                case .incomplete: return .needMore
                case .failure: return .failure(isUpstream ? .upstreamBadChunk : .badChunk)
                }
                state = .size
            case .trailers: return readTrailer(bytes, at: &offset)
            case .done: return .end
            }
        }
        return state == .done ? .end : .needMore
    }

    /// Reads a chunk-size line and enters its data, or the trailers after the last chunk.
    private mutating func readSize(_ bytes: Span<UInt8>, at start: Int) -> LineOutcome {
        var size: UInt64 = 0
        var index = start
        while index < bytes.count, let digit = ASCII.hexValue(bytes[index]) {
            guard index &- start < ChunkedDecoder.maximumSizeDigits else { return .failure(.badChunk) }
            size = size &<< 4 | UInt64(digit)
            index &+= 1
        }
        guard index < bytes.count else { return .incomplete }
        guard index > start, let length = Int(exactly: size) else { return .failure(.badChunk) }
        let end = endOfExtensions(bytes, from: index)
        guard end &- index <= maximumExtensionBytes else { return .failure(.badChunk) }
        guard case .next(let next) = FieldLine.readEnd(bytes, at: end, otherwise: .badChunk) else {
            let isCut = end == bytes.count || (end &+ 1 == bytes.count && bytes[end] == 0x0D)
            return isCut && beginsExtension(bytes, ByteRange(from: index, to: end), isCut: true)
                ? .incomplete : .failure(.badChunk)
        }
        guard beginsExtension(bytes, ByteRange(from: index, to: end), isCut: false) else { return .failure(.badChunk) }
        excess = max(0, excess &+ (end &- index) &- 16 &- 2 &* min(length, 1 << 20))
        guard excess <= ChunkedDecoder.maximumExcess else { return .failure(.badChunk) }
        remaining = length
        state = length == 0 ? .trailers : .data
        return .next(next)
    }

    /// Extensions are text and tabs; their content is ignored, because they are dropped.
    private func endOfExtensions(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var index = bytes.endOfText(from: start)
        while index < bytes.count, bytes[index] == 0x09 { index = bytes.endOfText(from: index &+ 1) }
        return index
    }

    /// Whether what follows the size is nothing, or a semicolon after optional white space.
    ///
    /// Old servers pad the size with blanks; what clients send is not read that way.
    private func beginsExtension(_ bytes: Span<UInt8>, _ range: ByteRange, isCut: Bool) -> Bool {
        if range.isEmpty { return true }
        var index = range.start
        while index < range.end, ASCII.isBlank(bytes[index]) { index &+= 1 }
        if index == range.end { return isUpstream || isCut && range.end == bytes.count }
        return bytes[index] == UInt8(ascii: ";")
    }

    private mutating func readTrailer(_ bytes: Span<UInt8>, at offset: inout Int) -> ChunkEvent {
        let failure = isUpstream ? HeadError.upstreamBadTrailer : .badTrailer
        if bytes[offset] == 0x0D {
            guard offset &+ 1 < bytes.count else { return .needMore }
            guard bytes[offset &+ 1] == 0x0A else { return .failure(failure) }
            offset &+= 2
            state = .done
            return .end
        }
        var field = HeadField.none
        switch FieldLine.read(bytes, at: offset, into: &field) {
        case .next(let next):
            trailerBytes &+= next &- offset
            trailerFields &+= 1
            guard trailerBytes <= maximumTrailerBytes, trailerFields <= ChunkedDecoder.maximumTrailerFields else {
                return .failure(failure)
            }
            offset = next
            return .trailer(field)
        case .incomplete:
            return trailerBytes &+ (bytes.count &- offset) > maximumTrailerBytes ? .failure(failure) : .needMore
        case .failure: return .failure(failure)
        }
    }
}
