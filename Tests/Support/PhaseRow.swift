import Testing

/// Every combination of flags, from none to all; in the tables, the first flag changes fastest.
package func combinations(_ flags: Int) -> [[Bool]] {
    (0..<1 << flags).map { number in (0..<flags).map { number >> $0 & 1 == 1 } }
}

/// All outcomes of a decision in one phase, as a letter for each combination of its flags.
package struct PhaseRow<Phase: Sendable>: CustomTestStringConvertible, Sendable {
    package let phase: Phase
    package let expected: String

    package init(_ phase: Phase, _ expected: String) {
        self.phase = phase
        self.expected = expected
    }

    package var testDescription: String { "\(phase)" }
}
