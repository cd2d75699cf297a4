import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

/// The patch of an object that is valid.
private func patch(_ changes: JSONObject) throws -> ClaimPatch { try ClaimPatch(changes) }

@Suite(.timeLimit(.minutes(2))) struct AccountClaimTests {
    @Test func `sets and removes claims of an account, and counts the changes`() async throws {
        try await withStores(2) { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            #expect(!ada.hasClaims)
            #expect(try await stores[0].claims(of: ada.subject) == VersionedClaims.none)
            #expect(
                try await stores[0].changeClaims(of: ada.subject, by: patch(["role": "staff", "teams": ["a", "b"]])))
            #expect(try await stores[1].changeClaims(of: ada.subject, by: patch(["level": 3, "role": nil])))
            let claims = try await stores[0].claims(of: ada.subject)
            #expect(claims.version == 2 && claims.claims.account == ["teams": ["a", "b"], "level": 3])
            #expect(claims.claims.identities.isEmpty)
            #expect(try await stores[1].account(ada.subject)?.claims == claims.claims.account)
            for person in [identity("apple", "001"), identity("apple", "001", "alias")] {
                #expect(try await stores[0].signIn(person).hasClaims)
            }
            #expect(try await stores[0].known(identity("apple", "001"))?.hasClaims == true)
        }
    }

    @Test func `a change that changes nothing does not count`() async throws {
        try await withStores { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            #expect(try await stores[0].changeClaims(of: ada.subject, by: patch(["role": "staff"])))
            #expect(try await !stores[0].changeClaims(of: ada.subject, by: patch(["role": "staff"])))
            #expect(try await !stores[0].changeClaims(of: ada.subject, by: patch([:])))
            #expect(try await stores[0].claims(of: ada.subject).version == 1)
        }
    }

    @Test func `an account that does not exist has no claims and gets none`() async throws {
        try await withStores { stores in
            for unknown in ["usr_nobody", "", "a\0b"] {
                #expect(try await stores[0].claims(of: unknown) == VersionedClaims.none)
                let change = try patch(["role": "staff"])
                let error = await code { _ = try await stores[0].changeClaims(of: unknown, by: change) }
                #expect(error == .accountsUnknownAccount)
            }
        }
    }

    @Test func `finds accounts by a claim, in pages`() async throws {
        try await withStores { stores in
            let store = stores[0]
            var subjects: [String] = []
            for number in 0..<9 { subjects.append(try await store.signIn(identity("apple", "\(number)")).subject) }
            subjects.sort()
            for subject in subjects[2...] {
                try await store.changeClaims(
                    of: subject, by: patch(["role": "staff", "teams": ["a", "b"], "level": 3]))
            }
            try await store.changeClaims(of: subjects[8], by: patch(["role": nil, "teams": ["b", "b"], "on": true]))
            /// The subjects with a claim, by pages of a size.
            func found(
                _ name: String, _ value: String, _ limit: Int = 100, disabled: Bool = false
            ) async throws -> [String] {
                let filter = AccountFilter(
                    onlyDisabled: disabled, claim: AccountFilter.Claim(name: name, value: value))
                var (found, start): ([String], String?) = ([], "")
                while let position = start {
                    let page = try await store.accounts(from: position, filter, limit: limit)
                    #expect(page.accounts.count <= limit)
                    found += page.accounts.map(\.subject)
                    start = page.next
                }
                return found
            }
            for limit in [1, 3, 6, 7] { #expect(try await found("role", "staff", limit) == Array(subjects[2..<8])) }
            #expect(try await found("teams", "b") == Array(subjects[2...]))
            #expect(try await found("teams", "a") == Array(subjects[2..<8]))
            #expect(try await found("level", "3").count == 7)
            #expect(try await found("on", "true") == [subjects[8]])
            for (name, value) in [("role", "Staff"), ("", "staff"), ("role", "a\0b")] {
                #expect(try await found(name, value).isEmpty)
            }
            try await store.setDisabled(account: subjects[3], at: noon)
            #expect(try await found("role", "staff", disabled: true) == [subjects[3]])
        }
    }

    @Test(arguments: [
        ("", ErrorCode.claimsNameInvalid), ("a b", .claimsNameInvalid), ("ä", .claimsNameInvalid),
        ("role:", .claimsNameInvalid), (String(repeating: "n", count: 65), .claimsNameInvalid),
        ("sub", .claimsNameReserved), ("email_verified", .claimsNameReserved), ("events", .claimsNameReserved),
    ])
    func `rejects names that no claim can have`(name: String, expected: ErrorCode) async {
        #expect(await code { _ = try patch(JSONObject([(name, "x")])) } == expected)
        #expect(await code { _ = try patch(JSONObject([(name, .null)])) } == expected)
    }

    @Test(
        arguments: [
            .object([:]), [["a"]], ["a", nil], .string("a\0b"), .string(String(repeating: "x", count: 1025)),
        ] as [JSONValue])
    func `rejects values that cannot be delivered or found`(value: JSONValue) async {
        #expect(await code { _ = try patch(["role": value]) } == .claimsValueInvalid)
    }

    @Test func `bounds the number and the size of claims`() async throws {
        try await withStores { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            let many = JSONObject((0..<32).map { ("claim\($0)", .integer(Int64($0))) })
            #expect(try await stores[0].changeClaims(of: ada.subject, by: patch(many)))
            #expect(
                await code { _ = try await stores[0].changeClaims(of: ada.subject, by: patch(["more": 1])) }
                    == .claimsTooLarge)
            #expect(try await stores[0].changeClaims(of: ada.subject, by: patch(["claim0": nil, "more": 1])))
            let long = JSONObject((0..<5).map { ("long\($0)", .string(String(repeating: "x", count: 1000))) })
            let eve = try await stores[0].signIn(identity("apple", "002"))
            #expect(
                await code { _ = try await stores[0].changeClaims(of: eve.subject, by: patch(long)) } == .claimsTooLarge
            )
            #expect(try await stores[0].claims(of: eve.subject) == VersionedClaims.none)
        }
    }

    @Test func `removed claims do not count`() async throws {
        try await withStores { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            for number in 0..<100 {
                try await stores[0].changeClaims(of: ada.subject, by: patch(JSONObject([("claim\(number)", 1)])))
                try await stores[0].changeClaims(of: ada.subject, by: patch(JSONObject([("claim\(number)", nil)])))
            }
            let claims = try await stores[0].claims(of: ada.subject)
            #expect(claims.version == 200 && claims.claims.account.isEmpty)
        }
    }

    @Test func `claims of rules are set at a login, and an operator has the last word`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let rules: JSONObject = ["role": "admin", "team": "a"]
            let ada = try await store.signIn(identity("apple", "001"), keeping: [:], setting: rules, at: noon)
            #expect(ada.isNew && ada.hasClaims)
            #expect(
                try await store.claims(of: ada.subject)
                    == VersionedClaims(version: 1, claims: AccountClaims(account: rules)))
            _ = try await store.signIn(identity("apple", "001"), keeping: [:], setting: rules, at: noon)
            #expect(try await store.claims(of: ada.subject).version == 1)
            // A login that says nothing about a claim leaves it.
            let next = try await store.signIn(identity("apple", "001"), keeping: [:], setting: ["team": "b"], at: noon)
            #expect(!next.isNew && next.hasClaims)
            #expect(try await store.claims(of: ada.subject).claims.account == ["role": "admin", "team": "b"])
            try await store.changeClaims(of: ada.subject, by: patch(["role": nil, "team": "c"]))
            _ = try await store.signIn(identity("apple", "001"), keeping: [:], setting: rules, at: noon)
            #expect(try await store.claims(of: ada.subject).claims.account == ["team": "c"])
            let filter = AccountFilter(claim: AccountFilter.Claim(name: "team", value: "c"))
            #expect(try await store.accounts(from: "", filter, limit: 5).accounts.map(\.subject) == [ada.subject])
        }
    }

    /// A profile's change.
    private func profile(name: String?) -> ProfilePatch {
        var patch = ProfilePatch()
        patch.set(name: name)
        return patch
    }

    @Test func `a profile is below the claims of rules and operators, and counts like theirs`() async throws {
        try await withStores(2) { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            #expect(try await store.profile(of: ada.subject) == [:])
            var both = profile(name: "Ada")
            both.set(locale: LanguageTag("en-gb"))
            #expect(try await store.changeProfile(of: ada.subject, by: both) == ["name": "Ada", "locale": "en-GB"])
            #expect(try await stores[1].changeProfile(of: ada.subject, by: both) == ["name": "Ada", "locale": "en-GB"])
            #expect(try await stores[1].profile(of: ada.subject) == ["name": "Ada", "locale": "en-GB"])
            var claims = try await store.claims(of: ada.subject)
            #expect(claims.version == 1 && claims.claims.account == ["name": "Ada", "locale": "en-GB"])

            // A login stores the layers of rules, and leaves the others.
            let login = try await store.signIn(
                identity("apple", "001"), keeping: ["name": "A."], setting: ["locale": "de"], at: noon)
            #expect(login.hasClaims)
            #expect(try await store.claims(of: ada.subject).claims.account == ["name": "Ada", "locale": "de"])
            try await store.changeClaims(of: ada.subject, by: patch(["name": "Countess"]))
            #expect(try await store.changeProfile(of: ada.subject, by: profile(name: "Queen"))["name"] == "Queen")
            claims = try await store.claims(of: ada.subject)
            #expect(claims.claims.account == ["name": "Countess", "locale": "de"])
            let record = try #require(try await store.account(ada.subject))
            #expect(record.claims == claims.claims.account && record.profile == ["name": "Queen", "locale": "en-GB"])
            let filter = AccountFilter(claim: AccountFilter.Claim(name: "name", value: "Countess"))
            #expect(try await store.accounts(from: "", filter, limit: 5).accounts.map(\.subject) == [ada.subject])
        }
    }

    @Test func `what an operator removes goes from the profile too, until the user sets it again`() async throws {
        try await withStores { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            _ = try await stores[0].changeProfile(of: ada.subject, by: profile(name: "Rude"))
            try await stores[0].changeClaims(of: ada.subject, by: patch(["name": nil]))
            #expect(try await stores[0].profile(of: ada.subject) == [:])
            #expect(try await stores[0].claims(of: ada.subject).claims.account.isEmpty)
            _ = try await stores[0].changeProfile(of: ada.subject, by: profile(name: "Ada"))
            #expect(try await stores[0].claims(of: ada.subject).claims.account == ["name": "Ada"])
            _ = try await stores[0].changeProfile(of: ada.subject, by: profile(name: nil))
            #expect(try await stores[0].claims(of: ada.subject).claims.account.isEmpty)
        }
    }

    @Test func `a profile takes no room from an operator`() async throws {
        try await withStores { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            let long = String(repeating: "\u{1F600}", count: 256)
            _ = try await stores[0].changeProfile(of: ada.subject, by: profile(name: long))
            let many = JSONObject((0..<32).map { ("claim\($0)", .string(String(repeating: "x", count: 100))) })
            #expect(try await stores[0].changeClaims(of: ada.subject, by: patch(many)))
            #expect(try await stores[0].claims(of: ada.subject).claims.account.count == 33)
        }
    }

    @Test func `an account that does not exist has no profile and gets none`() async throws {
        try await withStores { stores in
            for unknown in ["usr_nobody", "", "a\0b"] {
                let none = try await stores[0].profile(of: unknown)
                #expect(none == [:])
                let change = profile(name: "x")
                let error = await code { _ = try await stores[0].changeProfile(of: unknown, by: change) }
                #expect(error == .accountsUnknownAccount)
            }
        }
    }

    @Test func `what is too large is left out, so that logins do not fail`() async throws {
        try await withStores { stores in
            let long = JSONObject((0..<6).map { ("long\($0)", .string(String(repeating: "x", count: 1000))) })
            let ada = try await stores[0].signIn(identity("apple", "001"), keeping: [:], setting: long, at: noon)
            #expect(try await stores[0].claims(of: ada.subject).claims.account.count == 4)
        }
    }

    @Test func `concurrent changes of different claims all count`() async throws {
        try await withStores(2) { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        _ = try? await stores[number % 2].changeClaims(
                            of: ada.subject, by: patch(JSONObject([("claim\(number)", true)])))
                    }
                }
            }
            let claims = try await stores[0].claims(of: ada.subject)
            #expect(claims.version == 20 && claims.claims.account.count == 20)
        }
    }
}
