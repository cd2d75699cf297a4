import Testing

@testable import MartletProxy

/// Every combination of flags, from none to all; in the tables, the first flag changes fastest.
func combinations(_ flags: Int) -> [[Bool]] {
    (0..<1 << flags).map { number in (0..<flags).map { number >> $0 & 1 == 1 } }
}

/// All outcomes of a decision in one phase, as a letter for each combination of its flags.
struct PhaseRow<Phase: Sendable>: CustomTestStringConvertible, Sendable {
    let phase: Phase
    let expected: String

    init(_ phase: Phase, _ expected: String) {
        self.phase = phase
        self.expected = expected
    }

    var testDescription: String { "\(phase)" }
}

typealias ConnectionRow = PhaseRow<DownstreamConnection.Phase>
typealias UpstreamRow = PhaseRow<UpstreamConnection.Phase>
