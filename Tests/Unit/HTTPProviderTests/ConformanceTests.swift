import MartletConfig
import MartletCore
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@testable import HTTPProvider

/// Knows one key and one login.
private struct KeyService: HTTPCalling {
    static let key = "pt_0123456789abcdef"
    let isDown: Bool

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        guard !isDown else { throw HTTPCallError(code: "fetch.unreachable", message: "down") }
        guard case .body(let body, _) = call.content else { return HTTPCallResponse(status: 400, body: []) }
        let text = String(decoding: body, as: UTF8.self)
        let isKnown = text.contains("\"value\":\"\(Self.key)\"") || text.contains("\"code\":\"c-0123456789\"")
        let response = isKnown ? #"{"active":true,"subject":"ada","cache_for":9}"# : #"{"active":false}"#
        return HTTPCallResponse(status: 200, body: Array(response.utf8))
    }
}

@Suite struct `A provider of kind http conforms` {
    /// It stands still, so that no deadline passes on a busy machine.
    private static let clock = Clock(
        unixTime: { UnixTime(seconds: 1_800_000_000) }, monotonicTime: { MonotonicTime(nanoseconds: 1_000_000_000) })

    @Sendable private static func provider(isDown: Bool) throws -> HTTPProvider {
        let block = "url: http://127.0.0.1:7000/\naccepts: [{ bearer_prefix: pt_ }, { header: X-Key }]\nsign_in: true"
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics)
        guard let configuration = node?.decode(HTTPConfiguration.self, title: "p", into: &diagnostics) else {
            throw TestFailure("\(diagnostics)")
        }
        let detached = ProviderContext.Services.detached(clock: clock, hasUsers: false)
        let services = ProviderContext.Services(
            clock: clock, http: KeyService(isDown: isDown), store: detached.store, hashing: detached.hashing,
            users: nil)
        return try HTTPProvider(configuration, context: .detached("partner", services: services))
    }

    @Test func `to what the gateway expects`() async throws {
        var conformance = ProviderConformance(clock: Self.clock) { try Self.provider(isDown: false) }
        conformance.accepted = [
            Credential(bearer: Array(KeyService.key.utf8)), Credential(header: Array(KeyService.key.utf8)),
        ]
        conformance.rejected = [Credential(header: Array("pt_0123456789abcdeg".utf8))]
        conformance.forms = [SignInForm(texts: ["code": Secret("c-0123456789")], others: [:], isForm: false)]
        conformance.makeUnavailable = { try Self.provider(isDown: true) }
        let report = await conformance.run()
        print("conformance http: \(report)")
        #expect(report.passes, "\(report)")
    }
}
