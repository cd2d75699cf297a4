/// One request to a service on the internet, or on this machine.
package struct FetchRequest: Sendable {
    /// What is sent beside the head.
    package enum Content: Sendable {
        /// Nothing: a GET.
        case none
        /// A POST of `application/x-www-form-urlencoded` fields, which are encoded here.
        case form([(name: String, value: String)])
    }

    /// `https`, or `http` where the host is a loopback address.
    package var url: String
    package var content: Content
    package var headers: [(name: String, value: String)]
    /// For the whole of it, from the look-up of the name to the last byte.
    package var timeout: Duration
    /// How long the answer's body may be.
    package var maximumBytes: Int
    /// Whether it may be sent again on a new connection where a kept one ended under it without a response.
    ///
    /// What may not is sent at most once, on a connection of its own.
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

/// A complete answer, whatever its status but a redirect's.
package struct FetchResponse: Sendable, Equatable {
    package let status: Int
    package let body: [UInt8]
}

/// Encodes fields as a form does, with `%20` for a space.
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
