/// The digests that the body of a request has to have (RFC 9530): all that are there.
///
/// A provider returns them with ``Identity/bodyDigest``. The gateway compares them while the body streams, and ends a
/// request whose body differs before the upstream has all of it.
public struct BodyDigest: Sendable, Hashable {
    /// 32 bytes.
    public let sha256: [UInt8]?
    /// 64 bytes.
    public let sha512: [UInt8]?

    /// - Returns: `nil` if there is no digest, or one of another length.
    public init?(sha256: [UInt8]? = nil, sha512: [UInt8]? = nil) {
        guard sha256 != nil || sha512 != nil, sha256.map({ $0.count == 32 }) ?? true,
            sha512.map({ $0.count == 64 }) ?? true
        else { return nil }
        self.sha256 = sha256
        self.sha512 = sha512
    }
}
