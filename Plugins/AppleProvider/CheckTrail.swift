private import MartletCore
internal import MartletProvider

/// Runs named checks one after the other, and writes down how each went where somebody wants to know.
struct CheckTrail {
    private let isRecorded: Bool
    private(set) var verdicts: [CheckVerdict] = []

    /// - Parameter recorded: for `martlet explain`; the request path leaves nothing behind.
    init(recorded: Bool) { isRecorded = recorded }

    /// Runs one check.
    ///
    /// - Parameters:
    ///   - name: what is checked.
    ///   - body: finds something, or throws the reason why the check does not hold.
    mutating func check<Found>(_ name: String, _ body: () throws(Refusal) -> Found) throws(Refusal) -> Found {
        do throws(Refusal) {
            let found = try body()
            if isRecorded { verdicts.append(CheckVerdict(check: name, failure: nil, detail: "")) }
            return found
        } catch {
            if isRecorded { verdicts.append(CheckVerdict(check: name, failure: error.code, detail: error.message)) }
            throw error
        }
    }

    /// Adds what was seen to the check that has just held.
    mutating func note(_ detail: @autoclosure () -> String) {
        guard isRecorded, let last = verdicts.popLast() else { return }
        verdicts.append(CheckVerdict(check: last.check, failure: nil, detail: detail()))
    }
}

/// A text of a token as an operator may see it on a terminal: short, and without anything but printable ASCII.
func shown(_ text: String) -> String {
    let scalars = text.unicodeScalars.prefix(80).map { (0x20...0x7E).contains($0.value) ? $0 : "?" }
    return String(String.UnicodeScalarView(scalars)) + (text.unicodeScalars.count > 80 ? "…" : "")
}
