/// Expressions that are matched by index, without reference counting.
///
/// All event loops share the table: counting references on each match would make the cores contend for a cache line.
@safe struct ExpressionList: Sendable {
    private let owners: [RegularExpression]
    private let borrowed: [Unmanaged<RegularExpression>]

    init(_ expressions: [RegularExpression]) {
        owners = expressions
        unsafe borrowed = expressions.map { unsafe Unmanaged.passUnretained($0) }
    }

    /// Matches a whole path.
    func match(_ path: Span<UInt8>, with index: Int) -> RegularExpression.Outcome {
        // `owners` retains the object for the lifetime of this list.
        unsafe borrowed[index]._withUnsafeGuaranteedRef { $0.match(path) }
    }
}
