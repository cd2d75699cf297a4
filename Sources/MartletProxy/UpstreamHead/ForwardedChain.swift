internal import MartletConfig
internal import MartletHTTP
internal import MartletIO

/// The client's address behind trusted proxies: read from the end of their lists, as far as those are trusted.
enum ForwardedChain {
    /// The first address from the right that is not a trusted proxy's.
    ///
    /// `X-Forwarded-For` counts if present, else `Forwarded` (RFC 7239 §4): a proxy writes one of them.
    /// - Returns: `nil` where the list has no address: then the peer itself is the client.
    static func client(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, trusting ranges: [AddressRange]
    ) -> (text: [UInt8], octets: [UInt8])? {
        var list = KnownField.forwarded
        for index in 0..<head.fields.count where head.fields[index].known == .xForwardedFor { list = .xForwardedFor }
        var nearest: (text: [UInt8], octets: [UInt8])?
        for index in stride(from: head.fields.count - 1, through: 0, by: -1) where head.fields[index].known == list {
            let value = unsafe Array(bytes[head.fields[index].value])
            let nodes =
                list == .forwarded
                ? ForwardedNodes.nodes(of: value) : value.split(separator: UInt8(ascii: ",")).map { Array($0) }
            for node in nodes.reversed() {
                // A trusted proxy writes addresses only; nothing before another node counts.
                guard let text = ForwardedNodes.address(in: node),
                    let address = SocketEndpoint(literal: String(decoding: text, as: UTF8.self), port: 0)
                else { return nearest }
                let octets = address.addressBytes
                nearest = (text, octets)
                guard ranges.contains(where: { $0.contains(octets) }) else { return nearest }
            }
        }
        return nearest
    }
}
