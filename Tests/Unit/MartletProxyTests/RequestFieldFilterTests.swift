import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct RequestFieldFilterTests {
    /// What became of a client's head, with `;` for a line break.
    struct Rewritten: Equatable {
        var lines: String
        var hasHeldOverride = false
        var isHostMissing = false
        var extendsChain = false
        /// What the gateway writes after the list of addresses.
        var forwarding = ""
    }

    /// Rewrites a head with these lines after the request line.
    private func rewrite(
        _ lines: [String], _ rules: RequestFieldRules = [], on bench: UpstreamHeadBench = UpstreamHeadBench(),
        address: String = "192.0.2.1", keepsRequestLine: Bool = false
    ) -> Rewritten? {
        var input = ByteBuffer()
        input.append(text: "GET / HTTP/1.1\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n")
        var parser = RequestParser(maximumHeadBytes: 4096)
        var head = RequestHead(maximumFields: 20)
        guard case .complete = unsafe parser.parse(input.bytes.span, into: &head) else { return nil }
        var rewriter = RequestFieldFilter(rules)
        var out = ByteBuffer()
        if keepsRequestLine { rewriter.begin(with: ByteRange(from: 0, to: 16)) }
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            if unsafe rewriter.forwards(field, input.bytes, bench.snapshot, bench.route) {
                unsafe rewriter.copy(field.line, input.bytes, into: &out)
            }
        }
        unsafe rewriter.endFields(input.bytes, into: &out)
        var authority = ByteBuffer()
        authority.append("a")
        var forwarding = ByteBuffer()
        unsafe rewriter.writeForwarding(
            AddressText(address.utf8), authority: authority.bytes, into: &forwarding)
        return Rewritten(
            lines: shown(out.array), hasHeldOverride: rewriter.hasHeldOverride, isHostMissing: rewriter.isHostMissing,
            extendsChain: rewriter.extendsChain, forwarding: shown(forwarding.array))
    }

    private func shown(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: ";")
    }

    /// The lines that are forwarded of a head with `Host` and these fields.
    private func forwarded(
        _ fields: String..., by rules: RequestFieldRules = [], on bench: UpstreamHeadBench = UpstreamHeadBench()
    ) -> String? {
        rewrite(["Host: a"] + fields, rules, on: bench)?.lines
    }

    // MARK: Copying

    @Test(
        arguments: [
            ([], ""), (["A: 1"], "A: 1;"), (["A: 1", "B: 2"], "A: 1;B: 2;"), (["TE: x", "A: 1", "B: 2"], "A: 1;B: 2;"),
            (["A: 1", "TE: x", "B: 2"], "A: 1;B: 2;"), (["A: 1", "B: 2", "TE: x"], "A: 1;B: 2;"),
            (["A: 1", "TE: x", "Upgrade: x", "B: 2", "TE: x", "C: 3"], "A: 1;B: 2;C: 3;"),
            (["A: 1", "A: 2", "a: 3"], "A: 1;A: 2;a: 3;"), (["A:1", "B:  2 ", "C:"], "A:1;B:  2 ;C:;"),
            (["TE: x", "Upgrade: x"], ""), (["TE: x", "Via: x", "via:y"], "Via: x;via:y;"),
        ] as [([String], String)])
    func `copies forwarded lines in order and byte by byte`(_ fields: [String], _ expected: String) {
        #expect(rewrite(["Host: a"] + fields)?.lines == expected)
        // Where `Host` stands makes no difference.
        #expect(rewrite(fields + ["Host: a"])?.lines == expected)
    }

    @Test func `copies the request line with what follows it`() {
        let kept = rewrite(["A: 1", "Host: a"], .keepsHost, keepsRequestLine: true)
        #expect(kept?.lines == "GET / HTTP/1.1;A: 1;Host: a;")
        let cut = rewrite(["TE: x", "Host: a"], .keepsHost, keepsRequestLine: true)
        #expect(cut?.lines == "GET / HTTP/1.1;Host: a;")
        let alone = rewrite(["Host: a"], keepsRequestLine: true)
        #expect(alone?.lines == "GET / HTTP/1.1;")
    }

    // MARK: Host

    @Test(
        arguments: [
            ("Host: a", .keepsHost, "Host: a;", false), ("hOST: a", .keepsHost, "hOST: a;", false),
            ("Host:a", .keepsHost, "", true), ("Host:  a", .keepsHost, "", true), ("Host: a ", .keepsHost, "", true),
            ("Host:\ta", .keepsHost, "", true), ("Host:a ", .keepsHost, "", true),
            ("Host: a", [], "", false), ("Host: a", .isTrusted, "", false),
        ] as [(String, RequestFieldRules, String, Bool)])
    func `Host is kept with the usual spacing, and missing otherwise`(
        _ line: String, _ rules: RequestFieldRules, _ lines: String, _ isMissing: Bool
    ) {
        let found = rewrite([line], rules)
        #expect(found?.lines == lines && found?.isHostMissing == isMissing)
    }

    // MARK: Rules

    @Test(
        arguments: [
            ("Bearer t", [], true), ("Bearer t", .keepsOwnTokens, true), ("Bearer t", .dropsAuthorization, false),
            ("Bearer t", .isTrusted, true), ("Bearer mat_x", [], false), ("Bearer mrt_x", [], false),
            ("Bearer mat_x", .isTrusted, false), ("Bearer mat_x", .keepsOwnTokens, true),
            ("Bearer mat_x", [.keepsOwnTokens, .dropsAuthorization], false),
            ("Basic a,mat_x", [], false), ("Bearer xmat_x", [], true), ("Bearer x-mat_x", [], true),
            ("Bearer mat", [], true), ("", [], true),
        ] as [(String, RequestFieldRules, Bool)])
    func `a credential that the gateway consumed or issued is not forwarded`(
        _ value: String, _ rules: RequestFieldRules, _ expected: Bool
    ) {
        #expect(forwarded("Authorization: \(value)", by: rules) == (expected ? "Authorization: \(value);" : ""))
    }

    @Test func `an expectation is forwarded only where the client waits`() {
        #expect(forwarded("Expect: 100-continue") == "")
        #expect(forwarded("Expect: 100-continue", by: .isTrusted) == "")
        #expect(forwarded("Expect: 100-continue", by: .keepsExpect) == "Expect: 100-continue;")
    }

    @Test func `removals of the route apply where the rules say that there are some`() {
        let bench = UpstreamHeadBench(remove: ["x-debug", "x-other"])
        for field in ["X-Debug: 1", "x_debug: 1", "xdebug: 1", "X-Other: 2"] {
            #expect(forwarded(field, by: .hasRemovals, on: bench) == "", "\(field)")
            #expect(forwarded(field, by: [], on: bench) == "\(field);", "\(field)")
        }
        #expect(forwarded("X-Debugger: 1", by: .hasRemovals, on: bench) == "X-Debugger: 1;")
    }

    @Test(arguments: [
        "Connection: close", "Keep-Alive: 5", "Proxy-Connection: x", "TE: x", "Trailer: X",
        "Transfer-Encoding: chunked", "Content-Length: 1", "Upgrade: x", "Proxy-Authorization: x",
        "Proxy-Authenticate: x", "V-ia: x", "X-Request-Id: x", "X_Request_Id: x", "X-Auth-Subject: x",
        "XAuthSubject: x", "x.auth.subject: x", "X-A%41: x", "HTTP2-Settings: x", "Con-nection: x", "Tr-ailer: X",
    ])
    func `no rule lets a field of the connection, the gateway or an identity pass`(_ field: String) {
        let all: RequestFieldRules = [.isTrusted, .isSecure, .keepsOwnTokens, .keepsExpect, .keepsHost]
        #expect(forwarded(field) == "")
        #expect(forwarded(field, by: all) == "Host: a;")
    }

    // MARK: Method overrides

    @Test(
        arguments: [
            (true, [], "", true), (true, .isTrusted, "X-HTTP-Method: PUT;", false),
            (false, [], "X-HTTP-Method: PUT;", false), (false, .isTrusted, "X-HTTP-Method: PUT;", false),
        ] as [(Bool, RequestFieldRules, String, Bool)])
    func `a method override is held back where a route matches methods`(
        _ locked: Bool, _ rules: RequestFieldRules, _ lines: String, _ isHeld: Bool
    ) {
        let bench = UpstreamHeadBench(locked: locked)
        let found = rewrite(["Host: a", "X-HTTP-Method: PUT"], rules, on: bench)
        #expect(found?.lines == lines && found?.hasHeldOverride == isHeld)
        let without = rewrite(["Host: a", "A: 1"], rules, on: bench)
        #expect(without?.hasHeldOverride == false)
    }

    // MARK: The gateway's forwarding fields

    private static let http = "192.0.2.1;X-Forwarded-Proto: http"
    private static let https = "192.0.2.1;X-Forwarded-Proto: https"
    private static let node = "Forwarded: for=192.0.2.1"

    static let forwardings: [([String], RequestFieldRules, String)] = [
        ([], [], "\(http);X-Forwarded-Host: a"), ([], .isSecure, "\(https);X-Forwarded-Host: a"),
        (["X-Forwarded-Proto: gopher", "X-Forwarded-Host: b"], [], "\(http);X-Forwarded-Host: a"),
        (["X-Forwarded-Proto: gopher"], .isTrusted, "192.0.2.1;X-Forwarded-Host: a"),
        (["X-Forwarded-Host: b"], .isTrusted, http), (["X-Forwarded-Host: b"], [.isTrusted, .isSecure], https),
        (["X-Forwarded-Proto: gopher", "X-Forwarded-Host: b"], .isTrusted, "192.0.2.1"),
        (
            ["Forwarded: for=x"], .isTrusted,
            "\(http);X-Forwarded-Host: a;\(node);proto=http;host=\"a\""
        ),
        (["Forwarded: for=x"], [], "\(http);X-Forwarded-Host: a;\(node);proto=http;host=\"a\""),
        (
            ["Forwarded: for=x", "Forwarded: for=y"], .isSecure,
            "\(https);X-Forwarded-Host: a;\(node);proto=https;host=\"a\""
        ),
    ]

    @Test(arguments: forwardings)
    func `the forwarding fields are written where no trusted peer has sent them`(
        _ fields: [String], _ rules: RequestFieldRules, _ expected: String
    ) {
        #expect(rewrite(["Host: a"] + fields, rules)?.forwarding == expected)
    }

    @Test func `an IPv6 address is quoted in Forwarded alone`() {
        let found = rewrite(["Host: a", "Forwarded: for=x"], address: "2001:db8::1")
        let fields = "2001:db8::1;X-Forwarded-Proto: http;X-Forwarded-Host: a;"
        #expect(found?.forwarding == fields + "Forwarded: for=\"[2001:db8::1]\";proto=http;host=\"a\"")
    }

    @Test(
        arguments: [
            (["X-Forwarded-For: 9"], .isTrusted, true),
            (["X-Forwarded-For: 9", "X-Forwarded-For: 8"], .isTrusted, true), (["X-Forwarded-For: 9"], [], false),
            ([], .isTrusted, false), (["X-Forwarded-Host: b"], .isTrusted, false),
        ] as [([String], RequestFieldRules, Bool)])
    func `a trusted peer's chain is extended, and its line is not copied`(
        _ fields: [String], _ rules: RequestFieldRules, _ expected: Bool
    ) {
        let found = rewrite(["Host: a"] + fields, rules)
        #expect(found?.extendsChain == expected)
        #expect(found?.lines.contains("X-Forwarded-For") == false)
    }
}
