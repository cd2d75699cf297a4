import MartletHTTP
import MartletTesting
import Testing

@Suite struct FieldNameSetTests {
    /// Whether the set holds the name as a parser reads it.
    private func contains(_ set: FieldNameSet, _ name: String) -> Bool? {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(name): x\r\nPadding-So-That-More-Follows: y\r\n\r\n".utf8)
        var parser = RequestParser(maximumHeadBytes: 1024)
        var head = RequestHead(maximumFields: 10)
        guard case .complete = parser.parse(bytes.span, into: &head) else { return nil }
        #expect(set.contains(name) == set.contains(head.fields[1], in: bytes.span))
        return set.contains(head.fields[1], in: bytes.span)
    }

    @Test(arguments: [
        "X-User-Id", "x-user-id", "X_USER_ID", "x.user.id", "X-User_Id", "Authorized-By",
        "X-A-Name-Of-Thirty-Two-Bytes-abc", "X", "-X-User-Id", "X--User--Id", "XUserId", "x!user*id~", "X-User-Id.",
        "_x'u's'e'r|id",
    ])
    func `finds a name in every spelling`(_ name: String) {
        let set = FieldNameSet(
            ["X-User-Id", "authorized_by", "X-A-Name-Of-Thirty-Two-Bytes-ABC", "x"], reservesAuthPrefix: false)
        #expect(contains(set, name) == true)
    }

    @Test(arguments: ["X-User-Ids", "X-User-I", "X-User-1d", "X-User-Ie", "Y", "X-Auth-Subject", "-", "__"])
    func `does not find another`(_ name: String) {
        let set = FieldNameSet(
            ["X-User-Id", "authorized_by", "X-A-Name-Of-Thirty-Two-Bytes-ABC", "x"], reservesAuthPrefix: false)
        #expect(contains(set, name) == false)
    }

    @Test func `reserves the prefix if configured`() {
        let set = FieldNameSet([], reservesAuthPrefix: true)
        for name in [
            "X-Auth-Subject", "x_auth_email", "X.AUTH.x", "X-Auth-", "x_auth_", "X--Auth-Subject", "-x-auth-subject",
            "XAuth-Any", "XAuthAny", "x!a-u-t-h!any", "X~Auth~Any",
        ] {
            #expect(contains(set, name) == true, "\(name)")
        }
        for name in [
            "X-Auth", "X-Authx", "X-Authority", "X-Author", "XX-Auth-A", "Auth", "XAuth", "Y-Auth-A", "X-Aut-Ha",
        ] {
            #expect(contains(set, name) == false, "\(name)")
        }
    }

    @Test func `agrees with a plain comparison of letters`() {
        var random = SeededGenerator(seed: 3)
        func name() -> String {
            String((0..<Int.random(in: 1...20, using: &random)).map { _ in "aA-_.z09~".randomElement(using: &random)! })
        }
        func letters(_ text: String) -> String { text.lowercased().filter { $0.isLetter || $0.isNumber } }
        let names = (0..<200).map { _ in name() }
        let set = FieldNameSet(names, reservesAuthPrefix: false)
        let known = Set(names.map(letters)).subtracting([""])
        for _ in 0..<2000 {
            let candidate = Bool.random(using: &random) ? name() : names.randomElement(using: &random)!.uppercased()
            #expect(contains(set, candidate) == known.contains(letters(candidate)))
        }
    }
}
