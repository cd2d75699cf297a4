private import Glibc
internal import MartletCore

/// A cache of the last parsed header: tokens signed with one key mostly have the same header bytes.
///
/// The parse result depends on the bytes only, and all of them are compared. Thread-safe: a thread that finds the cache
/// locked parses the header itself.
public final class JWSHeaderCache: Sendable {
    private struct Entry {
        let text: [UInt8]
        let header: JWSHeader
    }

    private let last = Lock<Entry?>(nil)

    public init() {}

    /// The header of a token's first part, from the cache or parsed.
    func header(_ text: ArraySlice<UInt8>) throws(JOSEError) -> JWSHeader {
        let cached = last.withLockIfAvailable { entry -> JWSHeader? in
            guard let entry, Self.isSame(entry.text, text) else { return nil }
            return entry.header
        }
        if let header = cached.flatMap({ $0 }) { return header }
        let header = try JWSHeader(text)
        // Headers that will be rejected are not cached.
        guard header.error == nil, header.type != .other, header.algorithm != nil, header.keyID != nil else {
            return header
        }
        _ = last.withLockIfAvailable { $0 = Entry(text: Array(text), header: header) }
        return header
    }

    private static func isSame(_ cached: [UInt8], _ text: ArraySlice<UInt8>) -> Bool {
        guard cached.count == text.count else { return false }
        return unsafe cached.withUnsafeBytes { cached in
            unsafe text.withUnsafeBytes { text in
                guard let left = cached.baseAddress, let right = text.baseAddress else { return true }
                return unsafe memcmp(left, right, text.count) == 0
            }
        }
    }
}
