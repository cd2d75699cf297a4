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
            unsafe fields.append(Field(name: Self.lowered(bytes[field.name]), value: Array(bytes[field.value])))
        }
        // The query begins with its question mark, which a target without one does not have.
        let query = head.query.isEmpty ? nil : unsafe String(decoding: bytes[head.query].dropFirst(), as: UTF8.self)
        self = unsafe ReceivedHead(
            method: String(decoding: bytes[head.methodText], as: UTF8.self), scheme: scheme, authority: authority,
            path: String(decoding: bytes[head.path], as: UTF8.self), query: query, fields: fields, hasBody: hasBody)
    }

    private static func lowered(_ name: UnsafeBufferPointer<UInt8>) -> String {
        unsafe String(unsafeUninitializedCapacity: name.count) { output in
            for index in 0..<name.count {
                let byte = unsafe name[index]
                unsafe output[index] = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
            }
            return name.count
        }
    }
}
