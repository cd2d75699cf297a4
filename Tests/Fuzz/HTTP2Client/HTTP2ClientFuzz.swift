import MartletCore
import MartletHTTP
import MartletHTTP2

private let requests = [
    "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n", "POST /c HTTP/1.1\r\nHost: a\r\n\r\n",
].map { Array($0.utf8) }

/// The input is what an upstream sends, in pieces, to a client with three requests.
///
/// The HTTP/1 parser accepts every text as a response.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 1, let client = try? HTTP2Session.client(HTTP2Options()) else { return 0 }
    defer { client.free() }
    for request in requests {
        _ = request.withUnsafeBufferPointer { client.submitRequest($0, isSecure: true, ends: true) }
    }
    var output = ByteBuffer()
    client.takeOutput(into: &output, upTo: 1 << 16)
    let step = Int(data[0]) + 1
    var start = 1
    while start < size {
        let count = min(step, size - start)
        let bytes = Array(UnsafeBufferPointer(start: data + start, count: count))
        let goesOn = bytes.withUnsafeBufferPointer { client.receive($0, now: 0) }
        take(client, bytes)
        output.removeAll()
        client.takeOutput(into: &output, upTo: 4096)
        take(client, [])
        if !goesOn { break }
        start += count
    }
    return 0
}

private func take(_ client: HTTP2Session, _ bytes: [UInt8]) {
    while let event = client.nextEvent() {
        switch event {
        case .head(let stream, _), .interim(let stream):
            var text = ByteBuffer()
            client.takeHead(stream, into: &text)
            let bytes = text.array
            var parser = ResponseParser(maximumHeadBytes: 16384)
            var head = ResponseHead(maximumFields: 100)
            switch parser.parse(bytes.span, requestMethod: stream == 3 ? .head : .get, into: &head) {
            case .complete(let count): precondition(count == bytes.count)
            case .failure(let failure): precondition(failure == .upstreamBadContentLength)
            case .needMore: preconditionFailure()
            }
            if case .interim = event { precondition(head.isInterim) }
        case .data(let stream, let start, let count):
            precondition(start >= 0 && count > 0 && start + count <= bytes.count)
            client.consume(stream, count)
        case .refused(_, let failure): precondition(failure.rawValue >= 64)
        case .end, .closed, .drained, .goAway, .trailers: break
        }
    }
}
