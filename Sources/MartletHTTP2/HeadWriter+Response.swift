internal import MartletCore
internal import MartletHTTP

extension HeadWriter {
    mutating func addResponsePseudo(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        guard unsafe name.spells(":status"), status == 0, value.count == 3 else { return fail(.malformed) }
        for index in 0..<3 {
            let digit = unsafe value[index] &- 0x30
            guard digit < 10 else { return fail(.malformed) }
            status = status &* 10 &+ Int(digit)
        }
        // RFC 9113 §8.6: there is no 101.
        guard status >= 100, status < 600, status != 101 else { return fail(.malformed) }
    }

    mutating func writeStatusLine() {
        guard status != 0 else { return fail(.malformed) }
        text.append("HTTP/1.1 ")
        text.append(decimal: status)
        text.append(" ")
        text.append(HTTPStatus.reason(status))
        text.append("\r\n")
    }
}
