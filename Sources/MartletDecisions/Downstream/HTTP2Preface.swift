/// The client preface of HTTP/2 with prior knowledge (RFC 9113 §3.4).
package enum HTTP2Preface {
    /// How far the bytes are the preface.
    package enum Match { case other, incomplete, whole }

    private static let text: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    /// Compares the first bytes of a connection with the preface.
    package static func compare(_ bytes: UnsafeBufferPointer<UInt8>) -> Match {
        let count = min(bytes.count, text.utf8CodeUnitCount)
        for index in 0..<count {
            if unsafe bytes[index] != text.utf8Start[index] { return .other }
        }
        return count == text.utf8CodeUnitCount ? .whole : .incomplete
    }
}
