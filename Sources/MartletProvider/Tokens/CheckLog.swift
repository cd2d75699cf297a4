public import MartletCore
internal import MartletJSON

/// Runs named checks in order and, if asked to, records the result of each for ``Explaining``.
public struct CheckLog: Sendable {
    @usableFromInline let isRecorded: Bool
    @usableFromInline var recorded: [CheckOutcome] = []

    /// - Parameter recorded: for `martlet explain`; the request path records nothing.
    public init(recorded: Bool) { isRecorded = recorded }

    /// The results so far, in order.
    public var results: [CheckOutcome] { recorded }

    /// Runs one check.
    ///
    /// - Parameters:
    ///   - name: the check's name in the output of `martlet explain`.
    ///   - body: returns a value, or throws the reason why the check failed.
    // Inlined into other modules, so that a check is as cheap there as in this one.
    @inlinable
    public mutating func check<Value, Failure: CodedError>(
        _ name: String, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        do throws(Failure) {
            let value = try body()
            if isRecorded { recorded.append(CheckOutcome(check: name, failure: nil, detail: "")) }
            return value
        } catch {
            if isRecorded { recorded.append(CheckOutcome(check: name, failure: error.code, detail: error.message)) }
            throw error
        }
    }

    /// Adds a detail to the check that has just passed.
    @inlinable
    public mutating func note(_ detail: @autoclosure () -> String) {
        guard isRecorded, let last = recorded.popLast() else { return }
        recorded.append(CheckOutcome(check: last.check, failure: nil, detail: detail()))
    }
}

/// Makes texts of tokens and of other services safe to show.
public enum ShownText {
    private static let maximumLength = 80

    /// What a value is, without the value: a token's claims may be private.
    static func kind(of value: JSONValue?) -> String {
        switch value {
        case nil, .null?: "absent"
        case .bool?: "a boolean"
        case .number?: "a number"
        case .string(let text)?: text.isEmpty ? "an empty string" : "a string"
        case .array(let list)?: "a list of \(list.count)"
        case .object?: "an object"
        }
    }

    /// At most 80 characters of printable ASCII, for a terminal or a log line.
    public static func make(_ text: String) -> String {
        let scalars = text.unicodeScalars.prefix(maximumLength).map { (0x20...0x7E).contains($0.value) ? $0 : "?" }
        return String(String.UnicodeScalarView(scalars)) + (text.unicodeScalars.count > maximumLength ? "…" : "")
    }
}

/// Makes what an issuer says about an error safe for a log line.
public enum IssuerText {
    private static let maximumBytes = 256

    /// At most 256 bytes of printable ASCII; other characters as `\u{…}`.
    public static func make(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            let isPlain = (0x20...0x7E).contains(scalar.value) && scalar != "\\"
            let part = isPlain ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
            guard shown.utf8.count + part.utf8.count <= maximumBytes else { return shown + "…" }
            shown += part
        }
        return shown
    }
}
