/// An HTTP request to another service.
package struct FetchRequest: Sendable {
    /// The method and the body.
    package enum Content: Sendable {
        /// A GET without a body.
        case none
        /// A POST of `application/x-www-form-urlencoded` fields, given unencoded.
        case form([(name: String, value: String)])
    }

    /// An `https` URL, or an `http` URL of a loopback address.
    package var url: String
    package var content: Content
    package var headers: [(name: String, value: String)]
    /// The timeout of the whole exchange, from name resolution to the last byte.
    package var timeout: Duration
    /// The maximum size of the response body in bytes.
    package var maximumBytes: Int
    /// Whether it may be retried on a new connection if a reused one closed without a response.
    ///
    /// Other requests are sent at most once, on a new connection.
    package var isRepeatable: Bool

    package init(
        _ url: String, content: Content = .none, headers: [(name: String, value: String)] = [], timeout: Duration,
        maximumBytes: Int, isRepeatable: Bool = false
    ) {
        self.url = url
        self.content = content
        self.headers = headers
        self.timeout = timeout
        self.maximumBytes = maximumBytes
        self.isRepeatable = isRepeatable
    }
}

/// A complete response with any status except a redirect.
package struct FetchResponse: Sendable, Equatable {
    package let status: Int
    package let body: [UInt8]
}

/// Encodes form fields, with `%20` for a space.
func encodeForm(_ fields: [(name: String, value: String)]) -> [UInt8] {
    var text: [UInt8] = []
    for (index, field) in fields.enumerated() {
        if index > 0 { text.append(0x26) }
        appendEncoded(field.name, to: &text)
        text.append(0x3D)
        appendEncoded(field.value, to: &text)
    }
    return text
}

private func appendEncoded(_ value: String, to text: inout [UInt8]) {
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in value.utf8 {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: text.append(byte)
        default: text += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
}
