import MartletCore
import MartletHTTP
import MartletHTTP2

private let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
private let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n".utf8)
private let body = Array("abc".utf8)

/// The input is what a client sends after its preface, in pieces, to a server that responds to every request.
///
/// Every text is a request, or one whose content the HTTP/1 parser rejects; every range is in bounds; the output is
/// bounded. A server that has nghttp2 check requests too sends the same frames and has the same events.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var twice = HTTP2Options()
    twice.checksRequestsTwice = true
    guard size > 1, let server = try? HTTP2Session.server(HTTP2Options()), let other = try? HTTP2Session.server(twice)
    else { return 0 }
    defer { server.free() }
    defer { other.free() }
    let step = Int(data[0]) + 1
    feed(preface, to: server, other)
    var start = 1
    while start < size {
        let count = min(step, size - start)
        guard feed(Array(UnsafeBufferPointer(start: data + start, count: count)), to: server, other) else { break }
        start += count
    }
    send(server, other, upTo: 1 << 20)
    precondition(server.unsentTotal >= 0)
    return 0
}

@discardableResult
private func feed(_ bytes: [UInt8], to server: HTTP2Session, _ other: HTTP2Session) -> Bool {
    let goesOn = bytes.withUnsafeBufferPointer { server.receive($0, now: 0) }
    precondition(bytes.withUnsafeBufferPointer { other.receive($0, now: 0) } == goesOn)
    precondition(take(server, bytes) == take(other, bytes))
    if bytes.count % 3 == 0 { send(server, other, upTo: 4096) }
    return goesOn
}

private func send(_ server: HTTP2Session, _ other: HTTP2Session, upTo limit: Int) {
    var output = ByteBuffer()
    server.takeOutput(into: &output, upTo: limit)
    var same = ByteBuffer()
    other.takeOutput(into: &same, upTo: limit)
    precondition(output.count < 1 << 21 && output.array == same.array)
    precondition(take(server, []) == take(other, []))
}

/// The events, which are served as they come.
private func take(_ server: HTTP2Session, _ bytes: [UInt8]) -> [HTTP2Event] {
    var events: [HTTP2Event] = []
    while let event = server.nextEvent() {
        events.append(event)
        switch event {
        case .head(let stream, let ends):
            var text = ByteBuffer()
            server.takeHead(stream, into: &text)
            check(text.array, ends: ends)
            response.withUnsafeBufferPointer { server.submitHead(stream, $0, ends: false) }
            body.withUnsafeBufferPointer { server.send(stream, $0) }
            server.end(stream, trailers: UnsafeBufferPointer(start: nil, count: 0))
            if stream % 8 == 5 { server.reset(stream, .noError) }
        case .data(let stream, let start, let count):
            precondition(start >= 0 && count > 0 && start + count <= bytes.count)
            server.consume(stream, count)
        case .refused(let stream, let failure):
            precondition(failure.rawValue < 64)
            response.withUnsafeBufferPointer { server.submitHead(stream, $0, ends: true) }
        case .trailers(let stream):
            var text = ByteBuffer()
            server.takeHead(stream, into: &text)
            precondition(text.array.suffix(2) == [13, 10] || text.isEmpty)
        case .interim: preconditionFailure()
        case .end, .closed, .drained, .goAway: break
        }
    }
    return events
}

private func check(_ text: [UInt8], ends: Bool) {
    var parser = RequestParser(maximumHeadBytes: 16384)
    var head = RequestHead(maximumFields: 100)
    switch parser.parse(text.span, into: &head) {
    case .complete(let count):
        precondition(count == text.count)
        if !ends { precondition(head.framing != .none || !head.upgrade.isEmpty || head.method == .connect) }
    case .failure(let failure): precondition(isAboutContent(failure))
    case .needMore: preconditionFailure()
    }
}

/// The checks that the session leaves to the parser.
private func isAboutContent(_ failure: HeadError) -> Bool {
    switch failure {
    case .badHost, .authorizationRepeated, .badExpectation, .badContentLength, .badFieldName, .badRequestLine,
        .headTooLarge, .methodCase:
        true
    default: false
    }
}
