/// The result of parsing a head.
package enum HeadOutcome: Sendable, Equatable {
    /// The head is incomplete: buffer the bytes and call again with more appended.
    case needMore
    /// The head is complete; its length in bytes.
    case complete(Int)
    case failure(HeadError)
}
