private import Glibc
private import Synchronization

/// The header that was read last: tokens that were signed with one key mostly have the same, to the byte.
///
/// What a header says depends on its bytes alone, and every one of them is compared. Usable by any number of threads at once;
/// one that finds it in use reads for itself.
public final class JWSHeaderMemory: Sendable {
    private struct Known {
        let text: [UInt8]
        let header: JWSHeader
    }

    private let last = Mutex<Known?>(nil)

    public init() {}

    /// The header that a token's first part is, read or remembered.
    func header(_ text: ArraySlice<UInt8>) throws(JOSEError) -> JWSHeader {
        let known = last.withLockIfAvailable { known -> JWSHeader? in
            guard let known, Self.isSame(known.text, text) else { return nil }
            return known.header
        }
        if let header = known.flatMap({ $0 }) { return header }
        let header = try JWSHeader(text)
        // One that will be refused is not worth the place.
        guard header.problem == nil, header.algorithm != nil, header.keyID != nil else { return header }
        _ = last.withLockIfAvailable { $0 = Known(text: Array(text), header: header) }
        return header
    }

    private static func isSame(_ known: [UInt8], _ text: ArraySlice<UInt8>) -> Bool {
        guard known.count == text.count else { return false }
        return unsafe known.withUnsafeBytes { known in
            unsafe text.withUnsafeBytes { text in
                guard let left = known.baseAddress, let right = text.baseAddress else { return true }
                return unsafe memcmp(left, right, text.count) == 0
            }
        }
    }
}
