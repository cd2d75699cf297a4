import MartletConfig
import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import MartletDecisions

/// Explains a credential with these outcomes, once the gate is open.
private struct Explainer: Explaining {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "explainer"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    let accepts: [CredentialSource] = [.basic]
    let outcomes: [CheckOutcome]
    let gate: Gate?
    /// How often it was called.
    let calls = Box(0)

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) { self.init([]) }

    init(_ outcomes: [CheckOutcome], gate: Gate? = nil) {
        self.outcomes = outcomes
        self.gate = gate
    }

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity { throw .rejected("explainer.not_called") }

    func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        calls.withLock { $0 += 1 }
        await gate?.pass()
        return outcomes
    }
}

@Suite(.timeLimit(.minutes(2))) struct DebugLogTests {
    private static let failed = CheckOutcome(check: "audience", failure: "test.bad_audience", detail: "other")
    private static let signature = CheckOutcome(check: "signature", failure: nil, detail: "")

    private let log = LogRecorder()
    /// How many lines were looked at.
    private let read = Box(0)

    private func debug(_ minimum: LogLevel = .debug) -> DebugLog { DebugLog(Logger(log, minimum: minimum)) }

    private func reject(
        _ error: AuthenticationError, by provider: ProviderHandle? = nil, requestID: String = "r1", in debug: DebugLog
    ) {
        debug.credentialRejected(
            requestID: requestID, error, provider: provider, credential: Credential(bearer: Array("secret".utf8)),
            in: AuthenticationContext(now: UnixTime(seconds: 1), deadline: .never))
    }

    /// Waits for so many more lines.
    private func next(_ count: Int) async throws -> [String] {
        let start = read.value
        try await eventually("\(count) more lines are written") { log.lines.count >= start + count }
        read.withLock { $0 += count }
        return Array(log.texts[start..<start + count])
    }

    private func requestID(in line: String) -> String {
        let word = line.split(separator: " ").first { $0.hasPrefix("request_id=") }
        return word.map { String($0) } ?? ""
    }

    @Test(arguments: [(LogLevel.debug, true), (LogLevel.info, false), (LogLevel.error, false)])
    func `it is on where the level is enabled`(_ minimum: LogLevel, _ expected: Bool) {
        #expect(debug(minimum).isOn == expected)
    }

    @Test func `an event of a connection has its code and the client`() {
        debug().connection("TLS handshake failed", "tls.not_tls", client: "192.0.2.1")
        #expect(log.texts == ["debug TLS handshake failed code=tls.not_tls client=192.0.2.1"])
    }

    @Test func `a retry names the upstream that has failed`() {
        debug().retry(requestID: "r1", upstream: "http://127.0.0.1:9000", reason: "upstream.reset")
        #expect(
            log.texts == ["debug retrying upstream request_id=r1 upstream=http://127.0.0.1:9000 code=upstream.reset"])
    }

    @Test func `a rejected credential is logged with what is known about it, never with its text`() {
        let handle = ProviderHandle(Explainer([]), name: "tokens")
        let cause = StoreError(code: "store.full", message: "full")
        reject(.rejected("auth.bad_token"), in: debug())
        reject(.unavailable("auth.store", cause: cause), in: debug())
        reject(.unavailable("auth.store", cause: cause), by: handle, in: debug())
        reject(.unavailable("auth.store", cause: TestFailure("another kind of cause")), by: handle, in: debug())
        #expect(
            log.texts == [
                "debug credential rejected request_id=r1 code=auth.bad_token",
                "debug credential rejected request_id=r1 code=auth.store cause=store.full",
                "debug credential rejected request_id=r1 code=auth.store provider=tokens cause=store.full",
                "debug credential rejected request_id=r1 code=auth.store provider=tokens",
            ])
    }

    @Test func `the provider explains which checks have failed`() async throws {
        let explainer = Explainer([Self.signature, Self.failed])
        reject(.rejected("test.rejected"), by: ProviderHandle(explainer, name: "tokens"), in: debug())
        let lines = try await next(2)
        #expect(
            lines == [
                "debug credential rejected request_id=r1 code=test.rejected provider=tokens",
                "debug credential check failed request_id=r1 provider=tokens check=audience code=test.bad_audience "
                    + "detail=other",
            ])
        #expect(explainer.calls.value == 1)
    }

    @Test func `only the rejection of a credential is explained`() async throws {
        let explainer = Explainer([Self.failed])
        let handle = ProviderHandle(explainer, name: "tokens")
        let debug = debug()
        for disposition in [
            AuthenticationError.Disposition.unavailable, .malformed, .denied, .throttled, .notFound,
        ] {
            reject(AuthenticationError("test.other", disposition), by: handle, in: debug)
        }
        let others = try await next(5)
        reject(.rejected("test.rejected"), by: handle, in: debug)
        let explained = try await next(2)
        #expect(others.allSatisfy { $0 == "debug credential rejected request_id=r1 code=test.other provider=tokens" })
        #expect(explained.count == 2 && explainer.calls.value == 1)
    }

    @Test func `sixteen explanations may be in progress, and further rejections have none`() async throws {
        let gate = Gate()
        let explainer = Explainer([Self.failed], gate: gate)
        let handle = ProviderHandle(explainer, name: "tokens")
        let debug = debug()
        for number in 0..<20 { reject(.rejected("test.rejected"), by: handle, requestID: "r\(number)", in: debug) }
        let rejections = try await next(20)
        gate.open()
        let explanations = try await next(16)
        let explained = Set(explanations.map { requestID(in: $0) })
        #expect(rejections.count == 20 && rejections.allSatisfy { $0.hasPrefix("debug credential rejected") })
        #expect(explained == Set((0..<16).map { "request_id=r\($0)" }) && explainer.calls.value == 16)
    }

    @Test func `an explanation that has ended makes way for another one`() async throws {
        let explainer = Explainer([Self.failed])
        let handle = ProviderHandle(explainer, name: "tokens")
        let debug = debug()
        for _ in 0..<100 {
            reject(.rejected("test.rejected"), by: handle, in: debug)
            let lines = try await next(2)
            #expect(lines.count == 2)
        }
        #expect(explainer.calls.value == 100)
    }
}
