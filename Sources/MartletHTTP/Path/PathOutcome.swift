/// The result of normalizing a path.
package enum PathOutcome: Sendable, Equatable {
    /// The path is already in normal form.
    case unchanged
    /// The normal form was written to the buffer.
    case rewritten
    case failure(HeadError)
}
