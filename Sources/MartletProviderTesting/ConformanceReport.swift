/// What a conformance run has found.
public struct ConformanceReport: Sendable, CustomStringConvertible {
    /// A check of the suite.
    public enum Check: String, Sendable, CaseIterable {
        /// Valid credentials give an identity that the gateway can use.
        case accepts
        /// Invalid ones are rejected, which is not an outage.
        case rejects
        /// A valid one with one byte changed is rejected.
        case changed
        /// Bytes that no client would send are rejected.
        case hostile
        /// Random credentials are rejected.
        case random
        /// Where its services fail, valid credentials are not rejected: it is an outage.
        case unavailable
        /// A call returns soon after it was cancelled.
        case cancellation
        /// A call returns where its deadline has passed.
        case deadline
        /// Many calls at the same time give what one gives.
        case concurrency
        /// Another instance starts while this one serves, and this one ends.
        case reload
        /// Neither log lines nor errors contain a credential.
        case redaction
        /// Valid bodies sign in, and others are rejected or malformed.
        case signIn = "sign_in"
    }

    /// One way in which the provider does not behave as the gateway expects.
    public struct Finding: Sendable, Equatable {
        public let check: Check
        /// What was sent, without any valid credential, and the outcome.
        public let detail: String
    }

    /// How many calls each check made.
    public internal(set) var calls: [Check: Int] = [:]
    public internal(set) var findings: [Finding] = []

    public var passes: Bool { findings.isEmpty }

    mutating func count(_ check: Check) { calls[check, default: 0] += 1 }

    /// Adds a finding; of many of one check, the first ten.
    mutating func add(_ check: Check, _ detail: String) {
        guard findings.count(where: { $0.check == check }) < 10 else { return }
        findings.append(Finding(check: check, detail: detail))
    }

    /// The calls of each check, and the findings, a line each.
    public var description: String {
        let counts = Check.allCases.compactMap { check in calls[check].map { "\(check.rawValue) \($0)" } }
        return ([counts.joined(separator: ", ")] + findings.map { "\($0.check.rawValue): \($0.detail)" })
            .joined(separator: "\n")
    }
}
