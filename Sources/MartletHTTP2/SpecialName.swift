/// The names of regular fields that a header block treats specially.
enum SpecialName {
    case other
    case te, host, cookie, contentLength, contentType, webSocketKey, webSocketAccept
    /// RFC 9113 §8.2.2.
    case connectionSpecific

    /// - Parameter name: in lower case.
    init(_ name: UnsafeBufferPointer<UInt8>) {
        self =
            switch name.count {
            case 2: unsafe name.spells("te") ? .te : .other
            case 4: unsafe name.spells("host") ? .host : .other
            case 6: unsafe name.spells("cookie") ? .cookie : .other
            case 7: unsafe name.spells("upgrade") ? .connectionSpecific : .other
            case 10:
                unsafe name.spells("connection") || name.spells("keep-alive") ? .connectionSpecific : .other
            case 12: unsafe name.spells("content-type") ? .contentType : .other
            case 14: unsafe name.spells("content-length") ? .contentLength : .other
            case 16: unsafe name.spells("proxy-connection") ? .connectionSpecific : .other
            case 17:
                unsafe name.spells("transfer-encoding")
                    ? .connectionSpecific : name.spells("sec-websocket-key") ? .webSocketKey : .other
            case 20: unsafe name.spells("sec-websocket-accept") ? .webSocketAccept : .other
            default: .other
            }
    }
}
