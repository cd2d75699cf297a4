private import MartletCore
internal import MartletProvider

/// Runs named checks in order and, if asked to, records the result of each.
struct CheckLog {
    private let isRecorded: Bool
    private(set) var results: [CheckOutcome] = []

    /// - Parameter recorded: for `martlet explain`; the request path records nothing.
    init(recorded: Bool) { isRecorded = recorded }

    /// Runs one check.
    ///
    /// - Parameters:
    ///   - name: the check's name in the output of `martlet explain`.
    ///   - body: returns a value, or throws the reason why the check failed.
    mutating func check<Value>(_ name: String, _ body: () throws(AppleError) -> Value) throws(AppleError) -> Value {
        do throws(AppleError) {
            let value = try body()
            if isRecorded { results.append(CheckOutcome(check: name, failure: nil, detail: "")) }
            return value
        } catch {
            if isRecorded { results.append(CheckOutcome(check: name, failure: error.code, detail: error.message)) }
            throw error
        }
    }

    /// Adds a detail to the check that has just passed.
    mutating func note(_ detail: @autoclosure () -> String) {
        guard isRecorded, let last = results.popLast() else { return }
        results.append(CheckOutcome(check: last.check, failure: nil, detail: detail()))
    }
}

/// A string of a token made safe for a terminal: at most 80 characters of printable ASCII.
func shown(_ text: String) -> String {
    let scalars = text.unicodeScalars.prefix(80).map { (0x20...0x7E).contains($0.value) ? $0 : "?" }
    return String(String.UnicodeScalarView(scalars)) + (text.unicodeScalars.count > 80 ? "…" : "")
}
