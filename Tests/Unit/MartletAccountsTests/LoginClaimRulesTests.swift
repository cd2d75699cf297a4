import MartletAccounts
import MartletJSON
import Testing

@Suite struct LoginClaimRulesTests {
    private static let rules = LoginClaimRules(
        sources: [
            LoginClaimRules.Source(provider: "work", claim: "department", name: "team"),
            LoginClaimRules.Source(provider: "work", claim: "groups", name: "groups"),
        ],
        bootstraps: [
            LoginClaimRules.Bootstrap(
                provider: "password", providerSubject: "ada", claims: ["role": "admin", "level": 3])
        ])

    @Test func `take claims of logins under other names`() {
        let person = AccountIdentity(provider: "work", subjects: ["1"])
        let login: JSONObject = ["department": "sales", "groups": ["a", "b"], "name": "Ann"]
        #expect(Self.rules.claims(for: person, loggingInWith: login) == ["team": "sales", "groups": ["a", "b"]])
        #expect(Self.rules.claims(for: person, loggingInWith: nil).isEmpty)
        for login: JSONObject in [[:], ["department": nil], ["department": [:], "groups": [["a"]]]] {
            #expect(Self.rules.claims(for: person, loggingInWith: login).isEmpty)
        }
        let other = AccountIdentity(provider: "apple", subjects: ["1"])
        #expect(Self.rules.claims(for: other, loggingInWith: login).isEmpty)
    }

    @Test func `give one identity claims, with and without a login`() {
        for claims: JSONObject? in [nil, [:], ["role": "forged"]] {
            let ada = AccountIdentity(provider: "password", subjects: ["alias", "ada"])
            #expect(Self.rules.claims(for: ada, loggingInWith: claims) == ["role": "admin", "level": 3])
            for (provider, subject) in [("password", "eve"), ("apple", "ada"), ("password", "Ada")] {
                let other = AccountIdentity(provider: provider, subjects: [subject])
                #expect(Self.rules.claims(for: other, loggingInWith: claims).isEmpty)
            }
        }
    }
}
