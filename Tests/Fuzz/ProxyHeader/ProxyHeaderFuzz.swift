import MartletCore
import MartletHTTP

/// Reads the input as the beginning of a connection: every prefix must give the same outcome, or ask for more.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    let whole = ProxyHeader.parse(bytes.span)
    if case .needMore = whole { precondition(size < ProxyHeader.longest) }
    var decided: ProxyHeader.Outcome?
    for count in 0...min(size, ProxyHeader.longest) {
        let outcome = ProxyHeader.parse(bytes.span.extracting(0..<count))
        if let decided {
            precondition(outcome == decided, "more bytes changed the outcome")
        } else if outcome != .needMore {
            decided = outcome
            if case .complete(let used, let peer) = outcome {
                precondition(used == count, "it was complete earlier")
                if case .address(let address) = peer { check(address) }
            }
        }
    }
    precondition(decided ?? .needMore == whole)
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
