/// What a look at the bytes of a head came to.
package enum HeadOutcome: Sendable, Equatable {
    /// The head is not all there: keep the bytes and call again with more behind them.
    case needMore
    /// The head is complete and took so many bytes.
    case complete(Int)
    case failure(HeadFailure)
}
