/// How a route's `strip_prefix` changes a path on its way to the upstream.
package struct PathRewrite: Sendable, Equatable {
    /// How many bytes go from the front.
    package let strippedBytes: Int
    /// Whether nothing is left, so that the path becomes `/`.
    package let becomesRoot: Bool

    /// The path stays as it is.
    static let unchanged = PathRewrite(strippedBytes: 0, becomesRoot: false)
}
