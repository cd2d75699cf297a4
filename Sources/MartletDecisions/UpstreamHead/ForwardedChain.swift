package import MartletConfig
package import MartletHTTP
internal import MartletIO

/// The client behind trusted proxies: read from the end of their lists, as far as those are trusted.
package enum ForwardedChain {
    /// The first address from the right that is not a trusted proxy's.
    ///
    /// `X-Forwarded-For` counts if present, else `Forwarded` (RFC 7239 §4): a proxy writes one of them.
    /// - Returns: `nil` where the list has no address: then the peer itself is the client.
    package static func client(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, trusting ranges: [AddressRange]
    ) -> (text: [UInt8], octets: [UInt8])? {
        let list = head.fields.has(.xForwardedFor) ? KnownField.xForwardedFor : .forwarded
        guard head.fields.has(list) else { return nil }
        var nearest: (text: [UInt8], octets: [UInt8])?
        for index in stride(from: head.fields.count - 1, through: 0, by: -1) where head.fields[index].known == list {
            let value = unsafe Array(bytes[head.fields[index].value])
            let nodes =
                list == .forwarded
                ? ForwardedNodes.elements(of: value).map(\.node)
                : value.split(separator: UInt8(ascii: ",")).map { Array($0) }
            for node in nodes.reversed() {
                // A trusted proxy writes addresses only; nothing before another node counts.
                guard let (text, octets) = address(of: node) else { return nearest }
                nearest = (text, octets)
                guard ranges.contains(where: { $0.contains(octets) }) else { return nearest }
            }
        }
        return nearest
    }

    private static func address(of node: [UInt8]) -> (text: [UInt8], octets: [UInt8])? {
        guard let text = ForwardedNodes.address(in: node),
            let address = SocketEndpoint(literal: String(decoding: text, as: UTF8.self), port: 0)
        else { return nil }
        return (text, address.addressBytes)
    }

    /// What the proxies say in `Forwarded`, where a trusted peer has sent it.
    package static func elements(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> [ForwardedElement] {
        var elements: [ForwardedElement] = []
        for index in 0..<head.fields.count where head.fields[index].known == .forwarded {
            unsafe elements += ForwardedNodes.elements(of: Array(bytes[head.fields[index].value]))
        }
        return elements
    }

    /// Scheme and host as the client sees them: those of the element that the outermost trusted proxy has written, or
    /// else of the next one behind it that has them.
    package static func origin(of elements: [ForwardedElement], trusting ranges: [AddressRange]) -> ForwardedOrigin {
        var origin = ForwardedOrigin()
        for element in elements.reversed() {
            if let scheme = element.scheme { origin.scheme = scheme }
            if let host = element.validHost { origin.host = host }
            guard let (_, octets) = address(of: element.node), ranges.contains(where: { $0.contains(octets) })
            else { break }
        }
        return origin
    }

    /// The nodes as `X-Forwarded-For` has them (RFC 7239 §7.4): addresses, and `unknown` for all others.
    package static func addresses(of elements: [ForwardedElement]) -> [[UInt8]] {
        elements.map { address(of: $0.node)?.text ?? Array("unknown".utf8) }
    }
}

/// Scheme and host of a request as its client sees them, as far as a proxy says.
package struct ForwardedOrigin {
    package var scheme: String?
    package var host: [UInt8]?
}
