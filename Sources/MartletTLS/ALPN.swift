internal import MartletCore

/// Protocol name lists of RFC 7301: each name is prefixed with its length.
enum ALPN {
    /// Encodes a list of protocols.
    static func list(_ protocols: [TLSApplicationProtocol]) -> [UInt8] {
        protocols.flatMap { choice in
            choice.name.withUTF8Buffer { name in unsafe [UInt8(truncatingIfNeeded: name.count)] + Array(name) }
        }
    }

    /// The protocol with this name; `nil` for an unsupported one.
    static func protocolNamed(_ name: UnsafeBufferPointer<UInt8>) -> TLSApplicationProtocol? {
        for choice in [TLSApplicationProtocol.http2, .http1] {
            let isSame = choice.name.withUTF8Buffer { unsafe $0.elementsEqual(name) }
            if isSame { return choice }
        }
        return nil
    }

    /// The offset and length, in the client's list, of the first of our protocols that the client offers.
    static func choose(
        _ ours: [TLSApplicationProtocol], from offer: UnsafeBufferPointer<UInt8>
    ) -> (offset: Int, count: Int)? {
        for choice in ours {
            var offset = 0
            while offset < offer.count {
                let count = unsafe Int(offer[offset])
                guard count > 0, count < offer.count - offset else { break }
                let name = unsafe UnsafeBufferPointer(rebasing: offer[(offset + 1)..<(offset + 1 + count)])
                if unsafe protocolNamed(name) == choice { return (offset + 1, count) }
                offset += 1 + count
            }
        }
        return nil
    }
}
