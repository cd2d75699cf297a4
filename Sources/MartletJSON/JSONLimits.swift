/// Limits beyond which a document is rejected.
public struct JSONLimits: Sendable, Equatable {
    /// The upper bound of `maximumDepth`: the parser recurses, so this bounds its stack.
    static let deepest = 64

    /// The maximum nesting of arrays and objects, at most 64; 1 is a flat object.
    public let maximumDepth: Int
    public let maximumBytes: Int
    /// The maximum number of values of the document: its members and elements, at whatever depth.
    public let maximumValues: Int
    /// The maximum number of members of the document itself, where it is an object.
    public let maximumMembers: Int

    public init(
        maximumDepth: Int, maximumBytes: Int, maximumValues: Int = .max, maximumMembers: Int = .max
    ) {
        self.maximumDepth = min(maximumDepth, Self.deepest)
        self.maximumBytes = maximumBytes
        self.maximumValues = maximumValues
        self.maximumMembers = maximumMembers
    }
}
