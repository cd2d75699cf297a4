internal import MartletCore

/// Lists of protocol names as RFC 7301 writes them: each with its length before it.
enum ALPN {
    /// The list for an offer.
    static func list(_ protocols: [TLSApplicationProtocol]) -> [UInt8] {
        protocols.flatMap { choice in
            choice.name.withUTF8Buffer { name in unsafe [UInt8(truncatingIfNeeded: name.count)] + Array(name) }
        }
    }

    /// The protocol of a name; `nil` for one that is not ours.
    static func protocolNamed(_ name: UnsafeBufferPointer<UInt8>) -> TLSApplicationProtocol? {
        for choice in [TLSApplicationProtocol.http2, .http1] {
            let isSame = choice.name.withUTF8Buffer { unsafe $0.elementsEqual(name) }
            if isSame { return choice }
        }
        return nil
    }

    /// Where the first of our protocols that the client offers stands in its list, with its length.
    static func choose(
        _ ours: [TLSApplicationProtocol], from offer: UnsafeBufferPointer<UInt8>
    ) -> (offset: Int, count: Int)? {
        for choice in ours {
            var place = 0
            while place < offer.count {
                let count = unsafe Int(offer[place])
                guard count > 0, count < offer.count - place else { break }
                let name = unsafe UnsafeBufferPointer(rebasing: offer[(place + 1)..<(place + 1 + count)])
                if unsafe protocolNamed(name) == choice { return (place + 1, count) }
                place += 1 + count
            }
        }
        return nil
    }
}
