internal import MartletConfig
internal import MartletHTTP
internal import MartletIO

/// Who the client is behind proxies that are trusted: read from the end of their lists, as far as those can be believed.
enum ForwardedChain {
    /// The first address from the right that is no trusted proxy's.
    ///
    /// `X-Forwarded-For` counts where it is there, else `Forwarded` (RFC 7239 §4): a proxy writes the one or the other.
    /// - Returns: `nil` where the list names none: then the peer itself is the client.
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
                // What is no address was not written by a proxy that is trusted; nothing before it counts.
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
