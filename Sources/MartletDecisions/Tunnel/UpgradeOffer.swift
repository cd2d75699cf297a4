package import MartletCore
internal import MartletCrypto
package import MartletHTTP
package import MartletResponder

/// The protocol that a request wants to upgrade to (RFC 9110 §7.8), and what the upstream's 101 (Switching Protocols)
/// has to match.
package struct UpgradeOffer: ~Copyable {
    /// What the head of a request offers.
    package enum Outcome {
        /// Nothing, or only what is ignored: the request continues like any other.
        case none
        case rejected(Failure)
        case accepted(Accepted)
    }

    /// The first of the offered protocols that the route allows.
    package struct Accepted: Equatable {
        /// Its name, and its version if it was sent, in the head.
        package let name: ByteRange
        let isWebSocket: Bool
        /// The `Sec-WebSocket-Accept` value that the upstream must send; empty for other protocols.
        package let accept: String
    }

    private(set) var isWebSocket = false
    /// The protocol as the client spelled it.
    package private(set) var name = ByteBuffer()
    /// The `Sec-WebSocket-Accept` value that the upstream must send.
    private var accept = ByteBuffer()

    /// Stores what was accepted of the head in `bytes`.
    package mutating func set(_ accepted: Accepted, _ bytes: Span<UInt8>) {
        isWebSocket = accepted.isWebSocket
        name.removeAll()
        for index in accepted.name.bounds { name.append(bytes[index]) }
        accept.removeAll()
        accept.append(text: accepted.accept)
    }

    /// Frees the memory.
    package mutating func release() {
        name.release()
        accept.release()
    }

    // MARK: The request

    /// Checks what a request wants to upgrade to.
    ///
    /// - Parameters:
    ///   - head: what was parsed from `bytes`.
    ///   - allowed: the protocols that the route allows, each by its name or by its name and version.
    ///   - isConnect: whether it is an extended CONNECT, which asks for its protocol or for nothing (RFC 8441 §5).
    package static func read(
        _ head: borrowing RequestHead, _ bytes: Span<UInt8>, allowed: [String], isConnect: Bool = false
    ) -> Outcome {
        var list = UpgradeList(head.upgrade)
        var isIgnored = !isConnect
        var isUnknown = isConnect
        var chosen: ByteRange?
        while chosen == nil, let offered = list.next(bytes) {
            // RFC 9113 §3.1: obsolete; HTTP/2 in clear text uses prior knowledge.
            guard !equals(bytes, offered, Array("h2c".utf8)) else { continue }
            isIgnored = false
            if equals(bytes, offered, Array("websocket".utf8)) { isUnknown = false }
            if allows(offered, bytes, allowed) { chosen = offered }
        }
        if list.isMalformed { return .rejected(isUnknown ? .protocolUnknown : .upgradeMalformed) }
        if isIgnored { return .none }
        guard let chosen else { return .rejected(isUnknown ? .protocolUnknown : .upgradeRefused) }
        guard head.method == .get, head.framing.isEmpty else { return .rejected(.upgradeMalformed) }
        guard equals(bytes, chosen, Array("websocket".utf8)) else {
            return .accepted(Accepted(name: chosen, isWebSocket: false, accept: ""))
        }
        return readWebSocket(chosen, head, bytes)
    }

    /// Whether a route allows a protocol: by its name, or by its name and version.
    ///
    /// WebSocket is named without a version (RFC 6455 §4.1): with one, the name alone does not allow it.
    private static func allows(_ offered: ByteRange, _ bytes: Span<UInt8>, _ allowed: [String]) -> Bool {
        var end = offered.start
        while end < offered.end, bytes[end] != UInt8(ascii: "/") { end &+= 1 }
        let name = ByteRange(from: offered.start, to: end)
        let isWebSocket = equals(bytes, name, Array("websocket".utf8))
        for protocolName in allowed {
            let text = Array(protocolName.utf8)
            if equals(bytes, offered, text) || (!isWebSocket && equals(bytes, name, text)) { return true }
        }
        return false
    }

    /// RFC 6455 §4.2.1; an HTTP/2 stream has no key (RFC 8441 §5), its generated head has one of the gateway's.
    private static func readWebSocket(
        _ name: ByteRange, _ head: borrowing RequestHead, _ bytes: Span<UInt8>
    ) -> Outcome {
        var (keys, versions) = (0, 0)
        var key = ByteRange.empty
        var version = ByteRange.empty
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            // An upstream that folds names could take another spelling for a second key.
            switch field.known == .other ? KnownField.lookAlike(bytes, field.name) : field.known {
            case .secWebSocketKey: (keys, key) = (keys + 1, field.value)
            case .secWebSocketVersion: (versions, version) = (versions + 1, field.value)
            default: break
            }
        }
        guard versions == 1, equals(bytes, version, Array("13".utf8)) else { return .rejected(.webSocketVersion) }
        guard keys == 1, WebSocketKey.isValid(bytes, key) else { return .rejected(.upgradeMalformed) }
        return .accepted(Accepted(name: name, isWebSocket: true, accept: acceptValue(of: key, bytes)))
    }

    /// The digest of a key (RFC 6455 §4.2.2).
    private static func acceptValue(of key: ByteRange, _ bytes: Span<UInt8>) -> String {
        var text: [UInt8] = []
        for index in key.bounds { text.append(bytes[index]) }
        return Base64.encode(SHA1.digest(text + WebSocketKey.suffix), padding: .required)
    }

    // MARK: The response

    /// Whether a 101 matches the offer: the same protocol, and for a WebSocket the digest of its key (RFC 6455 §4.1).
    package func matches(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> Bool {
        guard UpgradeOffer.equals(bytes, head.upgrade, name.array) else { return false }
        var accepts = 0
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            guard field.known == .secWebSocketAccept else { continue }
            accepts += 1
            let isRight = UpgradeOffer.equals(bytes, field.value, accept.array, ignoringCase: false)
            guard isRight || !isWebSocket else { return false }
        }
        return accepts == 1 || !isWebSocket
    }

    /// Whether a range of `bytes` equals `text`, by default regardless of the case of letters.
    private static func equals(
        _ bytes: Span<UInt8>, _ range: ByteRange, _ text: [UInt8], ignoringCase: Bool = true
    ) -> Bool {
        guard range.count == text.count else { return false }
        for offset in 0..<text.count {
            let (found, expected) = (bytes[range.start &+ offset], text[offset])
            guard found == expected || (ignoringCase && lowercased(found) == lowercased(expected)) else {
                return false
            }
        }
        return true
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
