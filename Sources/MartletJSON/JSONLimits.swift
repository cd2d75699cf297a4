/// Limits beyond which a document is rejected.
public struct JSONLimits: Sendable, Equatable {
    /// The upper bound of `maximumDepth`: the parser recurses, so this bounds its stack.
    static let deepest = 64

    /// The maximum nesting of arrays and objects, at most 64; 1 is a flat object.
    public let maximumDepth: Int
    public let maximumBytes: Int

    public init(maximumDepth: Int, maximumBytes: Int) {
        self.maximumDepth = min(maximumDepth, Self.deepest)
        self.maximumBytes = maximumBytes
    }
}
