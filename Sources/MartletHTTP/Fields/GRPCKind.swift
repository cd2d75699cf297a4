/// Whether a caller uses gRPC, and gets errors as gRPC status.
package enum GRPCKind: UInt8, Sendable {
    case none
    /// gRPC over HTTP/2: `application/grpc`.
    case http2
    /// gRPC-Web, in binary: `application/grpc-web`.
    case web
    /// gRPC-Web, in base64: `application/grpc-web-text`.
    case webText

    /// The kind of a request with this content type, alone, with a suffix or with parameters.
    @inline(never)
    package init(contentType value: UnsafeBufferPointer<UInt8>) {
        let kinds: [(name: StaticString, kind: GRPCKind)] = [
            ("application/grpc", .http2), ("application/grpc-web", .web), ("application/grpc-web-text", .webText),
        ]
        self = .none
        for (name, kind) in kinds where unsafe GRPCKind.begins(value, with: name) { self = kind }
    }

    /// The kind of a request whose head could not be read, by its lines.
    package init(unreadableHead bytes: UnsafeBufferPointer<UInt8>) {
        self = .none
        let name: StaticString = "content-type:"
        var start = 0
        while start < bytes.count {
            let line = unsafe UnsafeBufferPointer(rebasing: bytes[start...])
            let end = unsafe line.firstIndex(of: 0x0A) ?? line.count
            // The empty line ends the head.
            if end < 2 { return }
            if unsafe GRPCKind.hasPrefix(line, name) {
                var value = unsafe line[name.utf8CodeUnitCount..<end]
                while let byte = unsafe value.first, ASCII.isBlank(byte) { unsafe value = value.dropFirst() }
                while let byte = unsafe value.last, byte <= 0x20 { unsafe value = value.dropLast() }
                self = unsafe GRPCKind(contentType: UnsafeBufferPointer(rebasing: value))
                return
            }
            start &+= end &+ 1
        }
    }

    private static func begins(_ value: UnsafeBufferPointer<UInt8>, with name: StaticString) -> Bool {
        guard unsafe hasPrefix(value, name) else { return false }
        guard value.count > name.utf8CodeUnitCount else { return true }
        let next = unsafe value[name.utf8CodeUnitCount]
        return next == UInt8(ascii: ";") || next == UInt8(ascii: "+") || next == UInt8(ascii: " ")
    }

    /// Whether bytes begin with a text in lower case, in any case.
    private static func hasPrefix(_ bytes: UnsafeBufferPointer<UInt8>, _ text: StaticString) -> Bool {
        guard bytes.count >= text.utf8CodeUnitCount else { return false }
        for index in 0..<text.utf8CodeUnitCount
        where unsafe ASCII.lowered(bytes[index]) != text.byte(at: index) { return false }
        return true
    }
}
