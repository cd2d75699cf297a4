import MartletCore
import MartletHTTP

private let endpoint = Array("/auth/check".utf8)

/// The body of a check by gRPC: what it becomes is one head, of a request to the endpoint, and of nothing else.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCheckCall(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let body = Array(UnsafeBufferPointer(start: data, count: count))
    var out = ByteBuffer()
    do {
        let call = try CheckCall(body.span)
        try call.writeHead(at: endpoint, body.span, into: &out)
    } catch {
        return 0
    }
    let bytes = out.array
    precondition(bytes.count <= 4 * body.count + 256)
    var parser = RequestParser(maximumHeadBytes: bytes.count + 1)
    var head = RequestHead(maximumFields: 1000)
    switch parser.parse(bytes.span, into: &head) {
    case .complete(let length):
        precondition(length == bytes.count)
        precondition(bytes[head.path.bounds].starts(with: endpoint + [UInt8(ascii: "/")]))
        guard case .none = head.framing, head.upgrade.isEmpty else { preconditionFailure("the head has a body") }
        guard let checked = try? CheckedRequest(describedBy: head, bytes.span, at: endpoint.span) else { return 0 }
        precondition(checked.method == head.methodText)
    case .needMore: preconditionFailure("the head has no end")
    case .failure: break
    }
    return 0
}
