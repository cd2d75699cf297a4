package import MartletHTTP
package import MartletProvider

extension ReceivedHead {
    /// The head as it was received.
    ///
    /// - Parameters:
    ///   - head: parsed from `bytes`.
    ///   - scheme: and `authority`, as the client sees them.
    package init(
        _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, scheme: String, authority: String,
        hasBody: Bool
    ) {
        var fields: [Field] = []
        fields.reserveCapacity(head.fields.count)
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            unsafe fields.append(
                Field(
                    name: String(decoding: bytes[field.name].map(Self.lowerCase), as: UTF8.self),
                    value: Array(bytes[field.value])))
        }
        // The query begins with its question mark, which a target without one does not have.
        let query = head.query.isEmpty ? nil : unsafe String(decoding: bytes[head.query].dropFirst(), as: UTF8.self)
        self = unsafe ReceivedHead(
            method: String(decoding: bytes[head.methodText], as: UTF8.self), scheme: scheme, authority: authority,
            path: String(decoding: bytes[head.path], as: UTF8.self), query: query, fields: fields, hasBody: hasBody)
    }

    private static func lowerCase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
