internal import MartletCore
internal import MartletHTTP

/// Trailers of requests: forwarded like fields of a head, unless the gateway gives the field a meaning.
extension EventLoop {
    /// Stores a request's trailer for forwarding, if it is allowed and was announced, or needs no announcement.
    mutating func collectTrailer(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        guard unsafe passesAsTrailer(field, bytes, of: exchange),
            unsafe goesOverStream(exchange) || announces(bytes[field.name], exchange)
        else { return }
        unsafe exchanges[exchange].requestTrailers.append(bytes[field.name])
        exchanges[exchange].requestTrailers.append(": ")
        unsafe exchanges[exchange].requestTrailers.append(bytes[field.value])
        exchanges[exchange].requestTrailers.append("\r\n")
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectTrailers(_ lines: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe collectTrailer(field, lines, of: exchange)
        }
    }

    /// Writes the `Trailer` field with the names that will be forwarded, and stores them.
    mutating func announceTrailers(
        _ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        for index in 0..<head.fields.count where head.fields[index].known == .trailer {
            let list = unsafe bytes[head.fields[index].value]
            var start = 0
            while start < list.count {
                var end = start
                while end < list.count, unsafe list[end] != UInt8(ascii: ",") { end &+= 1 }
                unsafe announceTrailer(UnsafeBufferPointer(rebasing: list[start..<end]), exchange, into: &out)
                start = end &+ 1
            }
        }
        if !exchanges[exchange].announcedTrailers.isEmpty { out.append("\r\n") }
    }

    /// Writes one name of the list, if its trailer will be forwarded.
    private mutating func announceTrailer(
        _ name: UnsafeBufferPointer<UInt8>, _ exchange: Int32, into out: inout ByteBuffer
    ) {
        // As a line of a trailer section, so that it is parsed as the trailer itself will be.
        var line = ByteBuffer()
        for index in name.indices where unsafe name[index] != 0x20 && name[index] != 0x09 {
            line.append(unsafe name[index])
        }
        let end = line.count
        line.append(":\r\n")
        var start = 0
        guard let field = unsafe TrailerLines.next(line.bytes.span, from: &start), field.name.end == end,
            unsafe passesAsTrailer(field, line.bytes, of: exchange)
        else { return }
        out.append(exchanges[exchange].announcedTrailers.isEmpty ? "Trailer: " : ", ")
        unsafe out.append(line.bytes[field.name])
        unsafe exchanges[exchange].announcedTrailers.append(lowercasing: line.bytes[field.name])
        exchanges[exchange].announcedTrailers.append(",")
    }

    /// Whether a field is allowed as a trailer: it is no known field in any spelling, and it would be forwarded in a
    /// head.
    private func passesAsTrailer(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) -> Bool {
        guard field.known == .other, unsafe KnownField.lookAlike(bytes.span, field.name) == .other else { return false }
        var rewriter = RequestRewriter(exchanges[exchange].fieldRules)
        return unsafe rewriter.forwards(
            field, bytes, exchanges[exchange].formerSnapshot ?? snapshot, Int(exchanges[exchange].route))
    }

    /// Whether the request is sent in HTTP/2 frames, where trailers need no announcement.
    func goesOverStream(_ exchange: Int32) -> Bool {
        exchanges[exchange].upstream >= 0 && upstreams[exchanges[exchange].upstream].kind == .stream
    }

    private func announces(_ name: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Bool {
        let announced = unsafe exchanges[exchange].announcedTrailers.bytes
        return unsafe announced.split(separator: UInt8(ascii: ",")).contains { part in
            unsafe part.count == name.count
                && zip(part, name).allSatisfy { $0 == ($1 >= 0x41 && $1 <= 0x5A ? $1 | 0x20 : $1) }
        }
    }
}
