/// What a document may cost before it is refused.
public struct JSONLimits: Sendable, Equatable {
    /// The deepest nesting that any caller can ask for: the parser recurses, so input must never choose its stack.
    static let deepest = 64

    /// How many arrays and objects may stand within each other; 1 is a flat object.
    ///
    /// Never more than 64.
    public let maximumDepth: Int
    public let maximumBytes: Int

    public init(maximumDepth: Int, maximumBytes: Int) {
        self.maximumDepth = min(maximumDepth, Self.deepest)
        self.maximumBytes = maximumBytes
    }
}
