/// The change of a path by a route's `strip_prefix`.
package struct PathRewrite: Sendable, Equatable {
    /// The number of leading bytes to remove.
    package let strippedBytes: Int
    /// Whether the result is empty, so that the path becomes `/`.
    package let becomesRoot: Bool

    /// The path is unchanged.
    static let unchanged = PathRewrite(strippedBytes: 0, becomesRoot: false)
}
