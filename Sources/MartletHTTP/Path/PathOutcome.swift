/// What normalising a path came to.
package enum PathOutcome: Sendable, Equatable {
    /// The path is in normal form as it stands.
    case unchanged
    /// The normal form was written to the buffer.
    case rewritten
    case failure(HeadFailure)
}
