internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP

/// `Forwarded` of a trusted peer (RFC 7239), which says what `X-Forwarded-*` do.
extension UpstreamHeadWriter {
    /// Writes the list of addresses, `X-Forwarded-*` as far as the peer has not sent them, and `Forwarded`, extended: all
    /// say the same. The caller ends the last line.
    @inline(never)
    static func writeForwardedChain(
        _ filter: inout RequestFieldFilter, _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        from address: AddressText, _ snapshot: Snapshot, into out: inout ByteBuffer
    ) {
        let elements = unsafe ForwardedChain.elements(of: head, bytes)
        if filter.extendsChain {
            unsafe writeChain(&head, bytes, into: &out)
        } else {
            for node in ForwardedChain.addresses(of: elements) {
                out.append(node)
                out.append(", ")
            }
        }
        out.append(address)
        let origin = ForwardedChain.origin(of: elements, trusting: snapshot.trustedProxies)
        let own = unsafe bytes[head.authority]
        if let host = origin.host {
            unsafe host.withUnsafeBufferPointer {
                unsafe filter.writeMissingFields(scheme: origin.scheme, host: $0, into: &out)
            }
        } else {
            unsafe filter.writeMissingFields(scheme: origin.scheme, host: own, into: &out)
        }
        out.append("\r\nForwarded: ")
        for index in 0..<head.fields.count where head.fields[index].known == .forwarded {
            let value = unsafe bytes[head.fields[index].value]
            guard !value.isEmpty, unsafe !OwnToken.appears(in: value) else { continue }
            unsafe out.append(value)
            out.append(", ")
        }
        unsafe filter.writeElement(address, authority: own, into: &out)
    }

    /// Writes the addresses in a trusted peer's `X-Forwarded-For`.
    @inline(never)
    static func writeChain(
        _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        for index in 0..<head.fields.count where head.fields[index].known == .xForwardedFor {
            let value = unsafe bytes[head.fields[index].value]
            guard unsafe !OwnToken.appears(in: value) else { continue }
            unsafe out.append(value)
            out.append(", ")
        }
    }
}
