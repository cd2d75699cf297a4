internal import MartletConfig
internal import MartletHTTP
internal import MartletResponder

extension ClientURL {
    /// The URL of a request, from its head.
    /// - Parameters:
    ///   - isSecure: whether the listener has TLS.
    ///   - isTrusted: whether the peer is a trusted proxy, which says what the client sees.
    ///   - proxies: those that are trusted.
    init(
        _ bytes: UnsafeBufferPointer<UInt8>, _ head: borrowing RequestHead, isSecure: Bool, isTrusted: Bool,
        trusting proxies: [AddressRange]
    ) {
        var scheme = isSecure ? "https" : "http"
        var authority = unsafe String(decoding: bytes[head.authority], as: UTF8.self)
        if isTrusted {
            if head.fields.has(.forwarded) {
                let elements = unsafe ForwardedChain.elements(of: head, bytes)
                let origin = ForwardedChain.origin(of: elements, trusting: proxies)
                scheme = origin.scheme ?? scheme
                if let host = origin.host { authority = String(decoding: host, as: UTF8.self) }
            }
            if let forwarded = unsafe head.values(of: "x-forwarded-proto", bytes).last {
                scheme = String(decoding: forwarded, as: UTF8.self)
            }
            if let forwarded = unsafe head.values(of: "x-forwarded-host", bytes).last {
                authority = String(decoding: forwarded, as: UTF8.self)
            }
        }
        let path = unsafe String(decoding: bytes[head.path], as: UTF8.self)
        self.init(scheme: scheme, authority: authority, path: path)
    }
}

extension RequestHead {
    /// The values of the fields with a name in lower case.
    func values(of name: String, _ bytes: UnsafeBufferPointer<UInt8>) -> [[UInt8]] {
        var values: [[UInt8]] = []
        for index in 0..<fields.count {
            let field = fields[index]
            guard unsafe String(decoding: bytes[field.name], as: UTF8.self).lowercased() == name else { continue }
            unsafe values.append(Array(bytes[field.value]))
        }
        return values
    }
}
