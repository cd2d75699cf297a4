/// Expressions that are matched by their place, without touching their reference counts.
///
/// All event loops share the table: a count that each match goes up and down would be one cache line for every core.
@safe struct ExpressionList: Sendable {
    private let owners: [RegularExpression]
    private let borrowed: [Unmanaged<RegularExpression>]

    init(_ expressions: [RegularExpression]) {
        owners = expressions
        unsafe borrowed = expressions.map { unsafe Unmanaged.passUnretained($0) }
    }

    /// Matches a whole path.
    func match(_ path: Span<UInt8>, with index: Int) -> RegularExpression.Outcome {
        // `owners` keeps the object alive for as long as this list is there.
        unsafe borrowed[index]._withUnsafeGuaranteedRef { $0.match(path) }
    }
}
