import MartletJSON
import MartletProvider
import Testing

@testable import MartletAuthenticator

@Suite struct PrincipalWeightTests {
    private func weight(_ claims: JSONObject, subject: String = "") -> Int {
        let identity = Samples.identity(claims: claims)
        return Principal(identity: identity, provider: "tokens", subject: subject, sessionID: nil).weight
    }

    @Test(arguments: [
        ("", 512), ("usr_1", 517), ("\u{e9}\u{738b}", 517), (String(repeating: "a", count: 1_000), 1_512),
    ])
    func `a principal has a fixed size and its subject's bytes`(subject: String, expected: Int) {
        #expect(weight([:], subject: subject) == expected)
    }

    /// Claims, and what they add: 64 for a member and the bytes of its name, 32 for an element.
    private static let claims: [(JSONObject, Int)] = [
        // Null, Booleans and numbers are 32 each.
        (["a": nil], 97), (["a": true], 97), (["a": false], 97), (["a": 1], 97), (["a": 1_234_567_890_123], 97),
        (["": nil], 96),
        // Text counts by its bytes, in names and values.
        (["a": ""], 65), (["role": "admin"], 73), (["\u{e9}": "\u{738b}"], 69), (["a": "b", "c": "d"], 132),
        (["a": []], 65), (["a": ["x", "yy"]], 132), (["a": [1, nil]], 193), (["a": [[], ["x"]]], 162),
        (["a": [:]], 65), (["a": ["b": "cc"]], 132), (["a": [["b": nil]]], 194),
    ]

    @Test(arguments: claims)
    func `claims add their names, their values and a fixed size each`(claims: JSONObject, expected: Int) {
        #expect(weight(claims) == 512 + expected)
    }

    @Test func `issuer, provider and session ID add nothing`() {
        let principal = Principal(
            identity: Samples.identity("someone with a long identifier"), provider: "a provider with a long name",
            subject: "usr_1", sessionID: "a long session ID")
        #expect(principal.weight == 517)
    }
}
