/// Recognizes gRPC calls by their content type.
package enum GRPCContentType {
    /// Whether a value of `content-type` is `application/grpc`, alone, with a suffix or with parameters.
    package static func matches(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        let name: StaticString = "application/grpc"
        guard value.count >= name.utf8CodeUnitCount else { return false }
        for index in 0..<name.utf8CodeUnitCount where unsafe value[index] | 0x20 != name.utf8Start[index] | 0x20 {
            return false
        }
        guard value.count > name.utf8CodeUnitCount else { return true }
        let next = unsafe value[name.utf8CodeUnitCount]
        return next == UInt8(ascii: ";") || next == UInt8(ascii: "+") || next == UInt8(ascii: " ")
    }
}
