import MartletConfig
import MartletTesting
import Testing

@testable import MartletServer

@Suite struct InstanceIDTests {
    private func make(_ host: String, seed: UInt64 = 1) -> String {
        var generator = SeededGenerator(seed: seed)
        return InstanceID.make(host: host, using: &generator)
    }

    @Test(arguments: [
        ("edge-1.example.com", "edge-1.example.com"), ("", "martlet"), ("-edge", "_edge"), (".edge", "_edge"),
        ("a\"b\\c d", "a_b_c_d"), ("é", "__"), (String(repeating: "h", count: 64), String(repeating: "h", count: 57)),
    ])
    func `it begins with the name of the host`(host: String, name: String) {
        let made = make(host)
        #expect(made.hasPrefix(name + "-"))
        #expect(made.utf8.count == name.utf8.count + 7)
        #expect(EntityName.validationError(in: made) == nil)
    }

    @Test func `two processes of a host have different ones`() {
        #expect(make("edge", seed: 1) != make("edge", seed: 2))
    }
}
