internal import MartletConfig
internal import MartletHTTP
internal import MartletIO

/// Who the client is behind proxies that are trusted: read from the end of `X-Forwarded-For`, as far as it can be believed.
enum ForwardedChain {
    /// The first address from the right that is no trusted proxy's.
    ///
    /// - Returns: `nil` where the list names none: then the peer itself is the client.
    static func client(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, trusting ranges: [AddressRange]
    ) -> (text: [UInt8], octets: [UInt8])? {
        var nearest: (text: [UInt8], octets: [UInt8])?
        for index in stride(from: head.fields.count - 1, through: 0, by: -1)
        where head.fields[index].known == .xForwardedFor {
            let value = unsafe Array(bytes[head.fields[index].value])
            for part in value.split(separator: UInt8(ascii: ",")).reversed() {
                let text = String(decoding: part, as: UTF8.self).filter { $0 != " " && $0 != "\t" }
                // What is no address was not written by a proxy that is trusted; nothing before it counts.
                guard let address = SocketEndpoint(literal: text, port: 0) else { return nearest }
                let octets = address.addressBytes
                nearest = (Array(text.utf8), octets)
                guard ranges.contains(where: { $0.contains(octets) }) else { return nearest }
            }
        }
        return nearest
    }
}
