import MartletCore
import MartletHTTP

/// Reads the input as the beginning of a connection: every shorter piece of it must leave the same answer open or give it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    let whole = ProxyHeader.parse(bytes.span)
    if case .needMore = whole { precondition(size < ProxyHeader.longest) }
    var settled: ProxyHeader.Outcome?
    for count in 0...min(size, ProxyHeader.longest) {
        let outcome = ProxyHeader.parse(bytes.span.extracting(0..<count))
        if let settled {
            precondition(outcome == settled, "more bytes changed the answer")
        } else if outcome != .needMore {
            settled = outcome
            if case .complete(let used, let peer) = outcome {
                precondition(used == count, "it was complete earlier")
                if case .address(let address) = peer { check(address) }
            }
        }
    }
    precondition(settled ?? .needMore == whole)
    return 0
}

/// What is written of an address is read as that address.
private func check(_ address: ProxyHeader.Address) {
    precondition(address.bytes.count == 16)
    var buffer = ByteBuffer()
    ProxyHeader.write(client: address, server: address, into: &buffer)
    let written = unsafe Array(buffer.bytes)
    precondition(ProxyHeader.parse(written.span) == .complete(count: written.count, peer: .address(address)))
}
