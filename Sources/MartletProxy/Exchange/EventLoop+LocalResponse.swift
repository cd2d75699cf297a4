internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// Responses that the gateway writes itself.
extension EventLoop {
    /// Sends a complete response in `staging`.
    mutating func sendCompleteResponse(_ exchange: Handle<Exchange>) {
        guard exchanges[exchange].isStream else { return sendStaging(exchange) }
        var whole = ByteBuffer()
        swap(&whole, &staging)
        let bytes = unsafe whole.bytes
        let head = unsafe ResponseHeadWriter.endOfHead(bytes)
        unsafe staging.append(UnsafeBufferPointer(rebasing: bytes[..<head]))
        sendStreamHead(exchange, ends: head == bytes.count)
        if head < bytes.count {
            unsafe write(UnsafeBufferPointer(rebasing: bytes[head...]), to: exchanges[exchange].downstream)
        }
        whole.removeAll()
        swap(&whole, &staging)
        finishStream(exchange)
    }

    /// Sends 100 (Continue), so that the client sends the body (RFC 9110 §15.2.1).
    mutating func sendContinue(_ exchange: Handle<Exchange>) {
        staging.removeAll()
        staging.append("HTTP/1.1 100 Continue\r\n\r\n")
        sendStreamHead(exchange, ends: false)
        sendStaging(exchange)
    }
}
