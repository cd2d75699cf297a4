// The part of Apple's framework that the guides use, on OpenSSL.
public import Foundation

@_silgen_name("SHA256")
private func opensslDigest(
    _ bytes: UnsafeRawPointer?, _ count: Int, _ digest: UnsafeMutablePointer<UInt8>?
)
    -> UnsafeMutablePointer<UInt8>?

public struct SHA256Digest: Sequence, Sendable {
    let bytes: [UInt8]
    public func makeIterator() -> IndexingIterator<[UInt8]> { bytes.makeIterator() }
}

public enum SHA256 {
    public static func hash(data: Data) -> SHA256Digest {
        var digest = [UInt8](repeating: 0, count: 32)
        _ = [UInt8](data).withUnsafeBytes { opensslDigest($0.baseAddress, $0.count, &digest) }
        return SHA256Digest(bytes: digest)
    }
}
