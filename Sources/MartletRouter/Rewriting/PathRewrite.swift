/// The change of a path by a route's `strip_prefix`.
package struct PathRewrite: Sendable, Equatable {
    /// The number of leading bytes to remove.
    package let strippedBytes: Int
    /// Whether the result is empty, so that the path becomes `/`.
    package let becomesRoot: Bool

    /// The path is unchanged.
    static let unchanged = PathRewrite(strippedBytes: 0, becomesRoot: false)

    /// Removes a prefix if its segments are the first whole segments of a path.
    ///
    /// - Parameters:
    ///   - path: normalized.
    ///   - prefix: normalized, without a trailing slash; empty if nothing is stripped.
    static func of(_ path: Span<UInt8>, stripping prefix: Span<UInt8>) -> PathRewrite {
        guard prefix.count > 0, path.count >= prefix.count else { return .unchanged }
        var index = 0
        while index < prefix.count {
            if prefix[index] != path[index] { return .unchanged }
            index &+= 1
        }
        if path.count == prefix.count { return PathRewrite(strippedBytes: prefix.count, becomesRoot: true) }
        guard path[prefix.count] == .slash else { return .unchanged }
        return PathRewrite(strippedBytes: prefix.count, becomesRoot: false)
    }
}
