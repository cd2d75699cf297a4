package import MartletCore

/// Normalizes a path to the form that is matched and forwarded, and rejects what an upstream could read differently.
///
/// Encoded unreserved characters are decoded, remaining triplets get upper-case digits, and characters beyond ASCII are
/// encoded. Rejected are dot segments in any spelling, empty segments, backslashes, encoded slashes, backslashes, percent
/// signs and control bytes, invalid triplets, invalid UTF-8, and characters that normalize to something with a meaning
/// in a path (``CompatibilityForms``).
package enum PathNormalizer {
    /// - Parameters:
    ///   - path: without the query.
    ///   - keepsEncodedSlash: whether `%2F` is preserved instead of rejected.
    ///   - keepsEncodedPercent: whether `%25` is preserved instead of rejected.
    ///   - mergesSlashes: whether consecutive slashes are merged instead of rejected.
    ///   - out: gets the normal form where it differs from the path; else unchanged.
    package static func normalize(
        _ path: Span<UInt8>, keepsEncodedSlash: Bool, keepsEncodedPercent: Bool, mergesSlashes: Bool = false,
        into out: inout ByteBuffer
    ) -> PathOutcome {
        guard path.count > 0, path[0] == UInt8(ascii: "/") else { return .failure(.pathAmbiguous) }
        if path.isPlainPath { return .unchanged }
        let check = PathCheck(
            keepsEncodedSlash: keepsEncodedSlash, keepsEncodedPercent: keepsEncodedPercent, mergesSlashes: mergesSlashes
        )
        return normalizeSlow(path, check, &out)
    }

    @inline(never)
    private static func normalizeSlow(
        _ path: Span<UInt8>, _ rules: PathCheck, _ out: inout ByteBuffer
    ) -> PathOutcome {
        var check = rules
        guard check.accepts(path) else { return .failure(.pathAmbiguous) }
        guard check.needsRewrite else { return .unchanged }
        write(path, into: &out)
        return .rewritten
    }

    /// Writes the normal form of an accepted path.
    private static func write(_ path: Span<UInt8>, into out: inout ByteBuffer) {
        out.removeAll()
        out.reserve(path.count)
        var index = 0
        while index < path.count {
            let byte = path[index]
            guard byte == UInt8(ascii: "%"), let value = PathCheck.triplet(path, at: index) else {
                // Consecutive slashes only get here where they are merged: keep the first.
                if byte >= 0x80 {
                    TargetEncoding.append(byte, to: &out)
                } else if byte != UInt8(ascii: "/") || index == 0 || path[index &- 1] != byte {
                    out.append(byte)
                }
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
