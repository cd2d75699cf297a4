import MartletCore
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct `The password provider conforms` {
    @Test func `to what the gateway expects`() async throws {
        let bench = try Bench(["basic: true"])
        var conformance = ProviderConformance(clock: bench.time.clock) { bench.provider }
        let pair = Base64.encode(Array("alice:\(Bench.alice)".utf8), padding: .required)
        conformance.accepted = [Credential(basic: Array(pair.utf8))]
        conformance.forms = [
            SignInForm(
                texts: ["username": Secret("Alice"), "password": Secret(Bench.alice)], others: [:], isForm: false)
        ]
        // Hashes are slow, and attempts are throttled: then every one of them is rejected without a hash.
        conformance.randomCount = 500
        conformance.verifiesBytes = false
        conformance.log = { bench.log.text }
        let report = await conformance.run()
        print("conformance password: \(report)")
        #expect(report.passes, "\(report)")
    }
}
