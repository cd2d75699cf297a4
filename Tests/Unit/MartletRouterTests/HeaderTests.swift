import MartletConfig
import MartletCore
import MartletHTTP
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletRouter

/// One claim written as one header.
struct EncodingCase: Sendable, CustomTestStringConvertible {
    let encoding: HeaderConfiguration.Encoding
    let claim: JSONValue?
    let value: String?
    var join: String?
    var fallback: String?
    var reason: ErrorCode?

    init(
        _ encoding: HeaderConfiguration.Encoding, _ claim: JSONValue?, _ value: String?, join: String? = nil,
        fallback: String? = nil, reason: ErrorCode? = nil
    ) {
        self.encoding = encoding
        self.claim = claim
        self.value = value
        self.join = join
        self.fallback = fallback
        self.reason = reason
    }

    var testDescription: String { "\(encoding.rawValue) \(claim.map { "\($0)" } ?? "nothing") join \(join ?? "-")" }
}

@Suite struct Headers {
    private static let long = String(repeating: "a", count: 8_192)

    static let cases: [EncodingCase] = [
        // percent
        .init(.percent, "plain", "plain"), .init(.percent, "a b\"c,;=(d)", "a b\"c,;=(d)"),
        .init(.percent, "100%", "100%25"),
        .init(.percent, "%41", "%2541"), .init(.percent, "J\u{fc}rgen", "J%C3%BCrgen"),
        .init(.percent, "\u{738b}\u{5c0f}\u{660e}", "%E7%8E%8B%E5%B0%8F%E6%98%8E"),
        .init(.percent, "\u{1F468}\u{200D}\u{1F4BB}", "%F0%9F%91%A8%E2%80%8D%F0%9F%92%BB"),
        .init(.percent, "\u{301}", "%CC%81"), .init(.percent, "e\u{301}", "e%CC%81"),
        .init(.percent, "\u{e9}", "%C3%A9"),
        .init(.percent, "a\r\nX-Auth-Subject: root", "a%0D%0AX-Auth-Subject: root"), .init(.percent, "\0", "%00"),
        .init(.percent, "\u{7f}\u{80}\t", "%7F%C2%80%09"), .init(.percent, "~ !", "~ !"),
        .init(.percent, " a ", "%20a%20"),
        .init(.percent, " ", "%20"), .init(.percent, "", ""), .init(.percent, "\u{FEFF}a", "%EF%BB%BFa"),
        .init(.percent, "\u{2028}", "%E2%80%A8"),
        // base64url
        .init(.base64url, "", ""), .init(.base64url, "f", "Zg"), .init(.base64url, "fo", "Zm8"),
        .init(.base64url, "foo", "Zm9v"),
        .init(.base64url, "foob", "Zm9vYg"), .init(.base64url, "\u{ff}?>~", "w78_Pn4"),
        .init(.base64url, "a\r\nb", "YQ0KYg"),
        .init(.base64url, true, "dHJ1ZQ"), .init(.base64url, 12, "MTI"),
        // rfc8187
        .init(.rfc8187, "\u{a3} and \u{20ac} rates", "UTF-8''%C2%A3%20and%20%E2%82%AC%20rates"),
        .init(.rfc8187, "", "UTF-8''"),
        .init(.rfc8187, "a!#$&+-.^_`|~z", "UTF-8''a!#$&+-.^_`|~z"),
        .init(.rfc8187, "*'%();\"\\,/", "UTF-8''%2A%27%25%28%29%3B%22%5C%2C%2F"),
        .init(.rfc8187, "a\r\nb\0", "UTF-8''a%0D%0Ab%00"),
        // ascii
        .init(.ascii, "a b%~", "a b%~"), .init(.ascii, "", ""),
        .init(.ascii, "\u{fc}", nil, reason: .headerNotPrintable),
        .init(.ascii, "a\r\nb", nil, reason: .headerNotPrintable),
        .init(.ascii, "a\0", nil, reason: .headerNotPrintable),
        .init(.ascii, "a\tb", nil, reason: .headerNotPrintable),
        .init(.ascii, "\u{7f}", nil, reason: .headerNotPrintable),
        .init(.ascii, "\u{1F600}", nil, reason: .headerNotPrintable),
        .init(.ascii, "\u{301}", nil, reason: .headerNotPrintable),
        .init(.ascii, " a", nil, reason: .headerNotPrintable), .init(.ascii, "a ", nil, reason: .headerNotPrintable),
        // Types.
        .init(.percent, true, "true"), .init(.percent, false, "false"), .init(.percent, 42, "42"),
        .init(.percent, -1, "-1"),
        .init(.percent, .number(JSONNumber(9_223_372_036_854_775_807)), "9223372036854775807"),
        .init(.percent, ["a": 1], nil, reason: .headerNotScalar), .init(.percent, ["a"], nil, reason: .headerNotScalar),
        .init(.percent, ["a": 1], nil, join: ",", fallback: "x", reason: .headerNotScalar),
        .init(.percent, nil, nil), .init(.percent, .null, nil), .init(.percent, nil, "none", fallback: "none"),
        .init(.percent, .null, "", fallback: ""), .init(.percent, nil, "%C3%BC", fallback: "\u{fc}"),
        .init(.base64url, nil, "YQ", fallback: "a"), .init(.percent, "", "", fallback: "x"),
        .init(.percent, false, "false", fallback: "x"),
        // Arrays.
        .init(.percent, ["a", "b"], "a,b", join: ","), .init(.percent, [], "", join: ","),
        .init(.percent, ["a,b", "c"], "a%2Cb,c", join: ","),
        .init(.percent, ["a, b", "c"], "a%2C b, c", join: ", "), .init(.percent, ["a b", "c"], "a%20b c", join: " "),
        .init(.percent, [" a ", "\u{fc}"], "%20a%20;%C3%BC", join: ";"),
        .init(.percent, ["a\r\n,b"], "a%0D%0A%2Cb", join: ","),
        .init(.percent, [true, 1, "x"], "true,1,x", join: ","), .init(.percent, ["", ""], ",", join: ","),
        .init(.percent, ["", "a"], nil, join: " ", reason: .headerNotPrintable),
        .init(.percent, ["a", nil], nil, join: ",", reason: .headerNotScalar),
        .init(.percent, ["a", ["b"]], nil, join: ",", reason: .headerNotScalar),
        .init(.percent, ["a", ["b": 1]], nil, join: ",", reason: .headerNotScalar),
        .init(.percent, "a,b", "a,b", join: ","),
        .init(.base64url, ["a,", "b"], "YSw,Yg", join: ","),
        .init(.rfc8187, ["a,", "\u{fc}"], "UTF-8''a%2C,UTF-8''%C3%BC", join: ","),
        .init(.ascii, ["a", "b c"], "a,b c", join: ","),
        .init(.ascii, ["a,b"], nil, join: ",", reason: .headerSeparatorInside),
        .init(.ascii, ["a", "\u{fc}"], nil, join: ",", reason: .headerNotPrintable),
        // JSON
        .init(.json, ["a": ["b", nil]], #"{"a":["b",null]}"#), .init(.json, [], "[]"), .init(.json, true, "true"),
        .init(.json, "J\u{fc}\u{1F4BB}\r\n\"", #""J\u00FC\uD83D\uDCBB\r\n\"""#), .init(.json, nil, nil),
        .init(.json, .null, "[]", fallback: "[]"), .init(.json, ["\u{7f}": 1], #"{"\u007f":1}"#),
        .init(.json, .string(long), nil, reason: .headerTooLong),
        // Length.
        .init(.percent, .string(long), long), .init(.percent, .string(long + "a"), nil, reason: .headerTooLong),
        .init(.percent, .string(String(repeating: "\u{fc}", count: 2_000)), nil, reason: .headerTooLong),
        .init(.base64url, .string(long), nil, reason: .headerTooLong),
        .init(.percent, .array(Array(repeating: "abc", count: 3_000)), nil, join: ",", reason: .headerTooLong),
        .init(.percent, .string(long + "a"), nil, fallback: "x", reason: .headerTooLong),
    ]

    private func render(
        _ headers: [HeaderConfiguration]?, _ principal: Principal?, name: String = "r"
    ) throws -> (String, [DroppedHeader]) {
        let auth = RouteConfiguration.Authentication.optional(providers: [])
        let table = try compiled([route(name, auth: auth, set: headers)])
        var buffer = ByteBuffer()
        buffer.append("before\r\n")
        let dropped = table.injections[table.routes[0].injection].render(principal, into: &buffer)
        let text = String(decoding: buffer.array, as: UTF8.self)
        #expect(text.hasPrefix("before\r\n"))
        return (String(decoding: text.utf8.dropFirst(8), as: UTF8.self), dropped)
    }

    @Test(arguments: cases) func `encode a claim in printable ASCII or are omitted`(_ item: EncodingCase) throws {
        let claims: JSONObject = item.claim.map { JSONObject([("c", $0)]) } ?? [:]
        let set = [
            header("X-One", .claim("c"), item.encoding, join: item.join, fallback: item.fallback),
            header("X-Two", .attribute(.provider)),
        ]
        let (text, dropped) = try render(set, principal(claims))
        #expect(text == (item.value.map { "X-One: \($0)\r\n" } ?? "") + "X-Two: apple\r\n")
        #expect(dropped == (item.reason.map { [DroppedHeader(name: "X-One", reason: $0)] } ?? []))
    }

    @Test(arguments: HeaderConfiguration.Encoding.allCases)
    func `never contain a line break, whatever the claim`(
        _ encoding: HeaderConfiguration.Encoding
    ) throws {
        var random = SeededGenerator(seed: 7)
        let table = try compiled([
            route(set: [
                header("X-A", .claim("c"), encoding),
                header("X-B", .claim("l"), encoding, join: encoding == .json ? nil : ","),
            ])
        ])
        for _ in 0..<500 {
            let scalars = (0..<Int.random(in: 0...20, using: &random)).compactMap { _ in
                UnicodeScalar(UInt32.random(in: 0...(Bool.random(using: &random) ? 0xFF : 0x10FFFF), using: &random))
            }
            let text = String(String.UnicodeScalarView(scalars))
            var buffer = ByteBuffer()
            let claims: JSONObject = ["c": .string(text), "l": [.string(text), "x"]]
            table.injections[0].render(principal(claims), into: &buffer)
            let lines = buffer.array.split(separator: 0x0A)
            #expect(lines.count <= 2)
            for line in lines {
                #expect(line.starts(with: Array("X-".utf8)) && line.last == 0x0D)
                #expect(line.dropLast().allSatisfy { (0x20...0x7E).contains($0) })
            }
        }
    }

    @Test func `take a member of a claim, and are omitted where there is none`() throws {
        let path = ClaimPath("org", "tenant")
        let set = [
            header("X-Tenant", .claim(path)), header("X-Org", .claim("org"), .json),
            header("X-Dots", .claim("org.tenant"), fallback: "none"),
        ]
        #expect(
            try render(set, principal(["org": ["tenant": "t9"]])).0
                == "X-Tenant: t9\r\nX-Org: {\"tenant\":\"t9\"}\r\nX-Dots: none\r\n")
        #expect(try render(set, principal(["org.tenant": "t8"])).0 == "X-Dots: t8\r\n")
        for claims: JSONObject in [["org": "text"], ["org": ["tenant"]], ["org": .null], ["org": ["tenant": .null]]] {
            #expect(try !render(set, principal(claims)).0.contains("X-Tenant"))
        }
        // Two sets are one only if they name the same claim.
        let table = try compiled([
            route("a", path: glob("/a"), set: [header("X-A", .claim(path))]),
            route("b", path: glob("/b"), set: [header("X-A", .claim(ClaimPath("\(path)")))]),
        ])
        #expect(table.injections.count == 2)
    }

    @Test func `default to subject, provider and a verified e-mail`() throws {
        #expect(try render(nil, principal()).0 == "X-Auth-Subject: apple:001.abc\r\nX-Auth-Provider: apple\r\n")
        let base = "X-Auth-Subject: apple:001.abc\r\nX-Auth-Provider: apple\r\n"
        #expect(
            try render(nil, principal(["email": "a@b.c", "email_verified": true])).0 == base + "X-Auth-Email: a@b.c\r\n"
        )
        for claims: JSONObject in [
            ["email": "a@b.c"], ["email": "a@b.c", "email_verified": false],
            ["email": "a@b.c", "email_verified": "true"],
            ["email": "a@b.c", "email_verified": 1], ["email_verified": true],
            ["email": .null, "email_verified": true],
        ] {
            #expect(try render(nil, principal(claims)).0 == base)
        }
        #expect(try render(nil, nil).0.isEmpty)
    }

    @Test func `are set from attributes`() throws {
        let set = PrincipalAttribute.allCases.map {
            header("X-\($0.rawValue.replacing("_", with: "-"))", .attribute($0))
        }
        let caller = principal(["email": "a@b.c", "email_verified": true], sessionID: "sid")
        let (text, dropped) = try render(set, caller, name: "orders")
        #expect(
            Set(text.split(separator: "\r\n").map(String.init)) == [
                "X-subject: apple:001.abc", "X-provider: apple", "X-issuer: https://appleid.apple.com",
                "X-route: orders",
                "X-provider-subject: 001.abc", "X-session-id: sid", "X-auth-time: 900", "X-expires-at: 5000",
                "X-email: a@b.c",
            ])
        #expect(dropped.isEmpty)
        #expect(try !render(set, principal()).0.contains("X-session-id"))
    }

    @Test func `have an address only where it is verified`() throws {
        let set = [header("X-Mail", .attribute(.email)), header("X-Or", .attribute(.email), fallback: "none")]
        #expect(
            try render(set, principal(["email": "a@b.c", "email_verified": true])).0
                == "X-Mail: a@b.c\r\nX-Or: a@b.c\r\n")
        for verified: JSONValue in [false, "true", 1, .null] {
            let caller = principal(["email": "ceo@victim.example", "email_verified": verified])
            #expect(try render(set, caller).0 == "X-Or: none\r\n")
        }
        #expect(try render(set, principal(["email": "ceo@victim.example"])).0 == "X-Or: none\r\n")
    }

    @Test func `without a principal have defaults and the route's name only`() throws {
        let set = [
            header("X-A", .attribute(.subject)), header("X-B", .claim("b"), fallback: "anonymous"),
            header("X-C", .attribute(.route)), header("X-D", .attribute(.subject), fallback: ""),
        ]
        #expect(try render(set, nil).0 == "X-B: anonymous\r\nX-C: r\r\nX-D: \r\n")
    }

    @Test func `that are constant leave the default ones, and say nothing about the caller`() throws {
        let constant = [header("X-Env", .constant("prod 100%; a=\"b\""))]
        let line = "X-Env: prod 100%; a=\"b\"\r\n"
        #expect(
            try render(constant, principal()).0 == "X-Auth-Subject: apple:001.abc\r\nX-Auth-Provider: apple\r\n" + line)
        #expect(try render(constant, nil).0 == line)
        let own = [header("x_auth_subject", .constant("one"))]
        #expect(try render(own, principal()).0 == "X-Auth-Provider: apple\r\nx_auth_subject: one\r\n")
        let mixed = constant + [header("X-A", .attribute(.provider))]
        #expect(try render(mixed, principal()).0 == line + "X-A: apple\r\n")
        let table = try compiled([route("a", path: glob("/a"), set: constant), route("b", auth: .none)])
        #expect(table.reservedNames.contains("x_env") && table.injections.map(\.id) == [0, 1])
        #expect(Compilation([route(set: [header("Cookie", .constant("a"))])]).codes == [.configBadHeader])
    }

    @Test func `are shared by routes with equal headers`() throws {
        let same = [header("X-A", .claim("a"), join: ",")]
        let table = try compiled([
            route("a", path: glob("/a")), route("b", path: glob("/b")), route("c", path: glob("/c"), set: same),
            route("d", path: glob("/d"), set: same), route("e", path: glob("/e"), set: [header("X-A", .claim("a"))]),
            route("f", path: glob("/f"), set: [header("X-R", .attribute(.route))]),
            route("g", path: glob("/g"), set: [header("X-R", .attribute(.route))]),
            route("h", path: glob("/h"), set: []),
        ])
        #expect(table.routes.map(\.injection) == [0, 0, 1, 1, 2, 3, 4, 5])
        #expect(table.injections.map(\.id) == [0, 1, 2, 3, 4, 5])
    }

    @Test func `reserve their names on every route`() throws {
        let table = try compiled([
            route("a", path: glob("/a"), set: [header("X-User_Id", .attribute(.subject))]),
            route("b", path: glob("/b"), auth: .none, remove: ["X-Internal.Debug"]),
        ])
        for name in [
            "x-user-id", "X-USER-ID", "x_user_id", "X.User_Id", "X-Auth-Subject", "x_auth_anything", "X-Auth-",
        ] {
            #expect(table.reservedNames.contains(name))
        }
        for name in ["x-user-ids", "x-user", "x-auth", "x-authority", "authorization", ""] {
            #expect(!table.reservedNames.contains(name))
        }
        #expect(table.routes[1].removeNames.contains("x_internal-debug"))
        #expect(!table.routes[1].removeNames.contains("x-auth-subject"))
        #expect(!table.routes[0].removeNames.contains("x-internal-debug"))
    }

    @Test(arguments: [
        "", "X A", "X:A", "X-\u{fc}", "X\r\nY", "Host", "connection", "Transfer_Encoding", "content.length",
        "Authorization",
        "Cookie", "X-Forwarded-For", "X-Request-Id",
    ])
    func `are rejected under reserved names`(_ name: String) {
        #expect(Compilation([route(set: [header(name, .claim("a"))])]).codes == [.configBadHeader])
    }

    @Test func `may be removed unless they frame the message`() {
        #expect(Compilation([route(remove: ["Cookie", "X-A", "Accept"])]).codes == [])
        #expect(Compilation([route(remove: ["Content-Length"])]).codes == [.configBadHeader])
    }

    @Test(arguments: [
        [header("X-A", .claim("a")), header("x_a", .claim("b"))], [header("X-A", .claim("a"), join: "")],
        [header("X-A", .claim("a"), join: "\n")], [header("X-A", .claim("a"), join: "%")],
        [header("X-A", .claim("a"), join: "and")],
        [header("X-A", .claim("a"), .base64url, join: "-")], [header("X-A", .claim("a"), .rfc8187, join: "|")],
        [header("X-A", .claim("a"), .ascii, fallback: "\u{fc}")],
        [header("X-A", .claim("a"), .ascii, fallback: "a\r\nb")],
        [header("X-A", .claim("a"), fallback: String(repeating: "a", count: 9_000))],
    ])
    func `are rejected if upstreams could misread them`(_ set: [HeaderConfiguration]) {
        #expect(Compilation([route(set: set)]).codes == [.configBadHeader])
    }
}
