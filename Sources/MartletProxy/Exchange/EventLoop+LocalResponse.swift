internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// Responses that the gateway writes itself.
extension EventLoop {
    /// Sends a complete response in `staging`.
    mutating func sendCompleteResponse(_ exchange: Int32) {
        guard exchanges[exchange].isStream else { return sendStaging(exchange) }
        var whole = ByteBuffer()
        swap(&whole, &staging)
        let bytes = unsafe whole.bytes
        let head = unsafe endOfHead(bytes)
        unsafe staging.append(UnsafeBufferPointer(rebasing: bytes[..<head]))
        sendStreamHead(exchange, ends: head == bytes.count)
        if head < bytes.count {
            unsafe write(UnsafeBufferPointer(rebasing: bytes[head...]), to: exchanges[exchange].downstream)
        }
        whole.removeAll()
        swap(&whole, &staging)
        finishStream(exchange)
    }

    /// Where the body begins in a response that the gateway wrote.
    func endOfHead(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        var index = 3
        while index < bytes.count {
            if unsafe bytes[index] == 0x0A, unsafe bytes[index &- 1] == 0x0D, unsafe bytes[index &- 2] == 0x0A {
                return index &+ 1
            }
            index &+= 1
        }
        return bytes.count
    }

    /// Sends 100 (Continue), so that the client sends the body (RFC 9110 §15.2.1).
    mutating func sendContinue(_ exchange: Int32) {
        staging.removeAll()
        staging.append("HTTP/1.1 100 Continue\r\n\r\n")
        sendStreamHead(exchange, ends: false)
        sendStaging(exchange)
    }
}
