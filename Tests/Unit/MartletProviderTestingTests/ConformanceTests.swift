import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletProviderTesting

/// A provider of one key, with a fault that a test chooses.
private struct Faulty: LocallyVerifying {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    enum Fault: CaseIterable {
        case none, acceptsPrefix, acceptsEmpty, rejectsAll, outageIsRejection, hangs, revealing, longSubject, expired
        case localAccepts, slowToCancel
    }

    static let key = "k_0123456789abcdef"
    static let kind: ProviderKind = "faulty"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    let fault: Fault
    var isDown = false
    /// Holds calls of one that is slow to be cancelled.
    let end: Gate

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        (fault, end) = (.none, Gate())
    }
    init(_ fault: Fault, isDown: Bool = false, until end: Gate) {
        (self.fault, self.isDown, self.end) = (fault, isDown, end)
    }

    var accepts: [CredentialSource] { [.bearerPrefix("k_"), .header("X-Key")] }

    func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification {
        if fault == .localAccepts { return .authenticated(identity("ada", context)) }
        return .undecided
    }

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        let text = credential.withBytes { String(decoding: $0, as: UTF8.self) }
        if isDown { throw fault == .outageIsRejection ? .rejected("faulty.down") : .unavailable("faulty.down") }
        if fault == .hangs, text == Self.key { await Gate.untilCancelled() }
        if fault == .slowToCancel, Task.isCancelled { await end.pass() }
        let isValid =
            switch fault {
            case .acceptsPrefix: text.hasPrefix("k_0123")
            case .acceptsEmpty: text == Self.key || text.isEmpty
            case .rejectsAll: false
            default: text == Self.key
            }
        guard isValid else {
            throw fault == .revealing ? .rejected("faulty.bad", cause: Reason(text: text)) : .rejected("faulty.bad")
        }
        return identity(fault == .longSubject ? String(repeating: "a", count: 256) : "ada", context)
    }

    private func identity(_ subject: String, _ context: AuthenticationContext) -> Identity {
        let end = context.now.advanced(bySeconds: fault == .expired ? 0 : 60)
        return Identity(
            providerSubject: subject, issuer: "faulty", claims: [:], authTime: context.now, issuedAt: context.now,
            expiresAt: end)
    }

    struct Reason: Error, CustomStringConvertible {
        let text: String
        var description: String { "not a key: \(text)" }
    }
}

@Suite(.timeLimit(.minutes(5))) struct `The conformance suite` {
    private func report(_ fault: Faulty.Fault, log: String = "") async -> ConformanceReport {
        let end = Gate()
        defer { end.open() }
        var conformance = ProviderConformance(clock: .system) { Faulty(fault, until: end) }
        conformance.accepted = [Credential(bearer: Array(Faulty.key.utf8))]
        conformance.rejected = [Credential(header: Array("k_other-key-of-someone".utf8))]
        conformance.makeUnavailable = { Faulty(fault, isDown: true, until: end) }
        conformance.randomCount = 500
        conformance.timeout = .milliseconds(500)
        conformance.log = { log }
        return await conformance.run()
    }

    @Test func `passes a provider that does what the gateway expects, and says what it tried`() async {
        let report = await report(.none)
        #expect(report.passes, "\(report)")
        #expect(report.calls[.accepts] == 1 && report.calls[.rejects] == 1 && report.calls[.random] == 500)
        #expect(report.calls[.concurrency] == 64 && report.calls[.unavailable] == 1 && report.calls[.reload] == 2)
        #expect((report.calls[.hostile] ?? 0) > 60 && (report.calls[.changed] ?? 0) == Faulty.key.utf8.count)
        #expect(report.description.hasPrefix("accepts 1, rejects 1, changed 18, hostile "))
    }

    private static let faults: [(Faulty.Fault, ConformanceReport.Check)] = [
        (.acceptsPrefix, .changed), (.acceptsEmpty, .hostile), (.rejectsAll, .accepts),
        (.outageIsRejection, .unavailable), (.hangs, .accepts), (.revealing, .redaction), (.longSubject, .accepts),
        (.expired, .accepts), (.localAccepts, .random), (.slowToCancel, .cancellation),
    ]

    @Test(arguments: faults)
    fileprivate func `finds each fault`(fault: Faulty.Fault, check: ConformanceReport.Check) async {
        let report = await report(fault)
        #expect(report.findings.contains { $0.check == check }, "\(report)")
        #expect(!report.description.contains(Faulty.key))
    }

    @Test func `finds a credential in the log`() async {
        #expect(await report(.none, log: "x \(Faulty.key) y").findings.map(\.check) == [.redaction])
    }

    @Test func `shows ten findings of a check`() async {
        let report = await report(.localAccepts)
        #expect(report.findings.count { $0.check == .random } == 10)
    }
}
