package import MartletCore

/// Brings a path into the one form that is matched and forwarded, and refuses what an upstream could read differently.
///
/// Encoded unreserved characters are decoded, the triplets that stay have upper-case digits. Dot segments however
/// spelt, empty segments, backslashes, encoded slashes, backslashes, percent signs and control bytes, broken triplets,
/// bad UTF-8 and characters that fold to what means something in a path (``CompatibilityForms``) are refused.
package enum PathNormalizer {
    /// - Parameters:
    ///   - path: without the query.
    ///   - keepsEncodedSlash: whether `%2F` stays, as text, instead of being refused.
    ///   - keepsEncodedPercent: whether `%25` stays, as text, instead of being refused.
    ///   - mergesSlashes: whether several slashes in a row become one, instead of being refused.
    ///   - out: emptied and filled with the normal form where it differs from the path; else not touched.
    package static func normalize(
        _ path: Span<UInt8>, keepsEncodedSlash: Bool, keepsEncodedPercent: Bool, mergesSlashes: Bool = false,
        into out: inout ByteBuffer
    ) -> PathOutcome {
        guard path.count > 0, path[0] == UInt8(ascii: "/") else { return .failure(.pathAmbiguous) }
        if path.isPlainPath { return .unchanged }
        let check = PathCheck(
            keepsEncodedSlash: keepsEncodedSlash, keepsEncodedPercent: keepsEncodedPercent, mergesSlashes: mergesSlashes
        )
        return judge(path, check, &out)
    }

    @inline(never)
    private static func judge(
        _ path: Span<UInt8>, _ rules: PathCheck, _ out: inout ByteBuffer
    ) -> PathOutcome {
        var check = rules
        guard check.accepts(path) else { return .failure(.pathAmbiguous) }
        guard check.needsRewrite else { return .unchanged }
        write(path, into: &out)
        return .rewritten
    }

    /// Writes the normal form of a path that was accepted.
    private static func write(_ path: Span<UInt8>, into out: inout ByteBuffer) {
        out.removeAll()
        out.reserve(path.count)
        var index = 0
        while index < path.count {
            let byte = path[index]
            guard byte == UInt8(ascii: "%"), let value = PathCheck.triplet(path, at: index) else {
                // Of slashes in a row, which only get here where they are merged, the first one stays.
                if byte != UInt8(ascii: "/") || index == 0 || path[index &- 1] != byte { out.append(byte) }
                index &+= 1
                continue
            }
            if PathByte.isUnreserved(value) {
                out.append(value)
            } else {
                out.append(byte)
                out.append(upper(path[index &+ 1]))
                out.append(upper(path[index &+ 2]))
            }
            index &+= 3
        }
    }

    private static func upper(_ digit: UInt8) -> UInt8 { digit >= UInt8(ascii: "a") ? digit & ~0x20 : digit }
}
