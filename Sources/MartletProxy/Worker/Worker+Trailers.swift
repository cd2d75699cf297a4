internal import MartletCore
internal import MartletHTTP

/// Trailers of requests: what passes as a field of a head passes here, unless the gateway knows the field at all.
extension Worker {
    /// Passes a request's trailer if it may go on and the request announced it, or needs no announcement.
    mutating func keepTrailer(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        guard unsafe passesAsTrailer(field, bytes, of: exchange),
            unsafe goesOverStream(exchange) || announces(bytes[field.name], exchange)
        else { return }
        unsafe exchanges[exchange].requestTrailers.append(bytes[field.name])
        exchanges[exchange].requestTrailers.append(": ")
        unsafe exchanges[exchange].requestTrailers.append(bytes[field.value])
        exchanges[exchange].requestTrailers.append("\r\n")
    }

    /// The same for the trailers of a stream, lines of text.
    mutating func keepTrailers(_ lines: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe keepTrailer(field, lines, of: exchange)
        }
    }

    /// Writes the `Trailer` field with the names that will pass, and remembers these.
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

    /// Writes one name of the list, if its trailer will pass.
    private mutating func announceTrailer(
        _ name: UnsafeBufferPointer<UInt8>, _ exchange: Int32, into out: inout ByteBuffer
    ) {
        // As a line of a trailer section, so that it is read as the trailer itself will be.
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

    /// Whether a field may follow the body: one that the gateway does not know by its letters either, and that may stand
    /// in a head.
    private func passesAsTrailer(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) -> Bool {
        guard field.known == .other, unsafe KnownField.lookAlike(bytes.span, field.name) == .other else { return false }
        var rewriter = RequestRewriter(exchanges[exchange].fieldRules)
        return unsafe rewriter.keeps(
            field, bytes, exchanges[exchange].formerSnapshot ?? snapshot, Int(exchanges[exchange].route))
    }

    /// Whether the upstream gets the request in frames, where trailers need no announcement.
    func goesOverStream(_ exchange: Int32) -> Bool {
        exchanges[exchange].link >= 0 && links[exchanges[exchange].link].kind == .stream
    }

    private func announces(_ name: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Bool {
        let announced = unsafe exchanges[exchange].announcedTrailers.bytes
        return unsafe announced.split(separator: UInt8(ascii: ",")).contains { part in
            unsafe part.count == name.count
                && zip(part, name).allSatisfy { $0 == ($1 >= 0x41 && $1 <= 0x5A ? $1 | 0x20 : $1) }
        }
    }
}
