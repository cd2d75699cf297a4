import MartletCore
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// No field of a client takes a token of the gateway to an upstream, unless its route forwards credentials.
@Suite struct `Own tokens in fields` {
    static let fields = [
        "Authorization: Bearer %", "Authorization: Token %", "Authorization: %", "X-Api-Key: %", "X-Token: \"%\"",
        "Referer: https://a/reset?token=%", "Sec-WebSocket-Protocol: bearer, %", "X-HTTP-Method-Override: %",
        "X_Api_Key:%", "Forwarded: for=%", "Via: 1.1 %", "Accept: %",
    ]

    @Test(arguments: fields)
    func `a field that holds one is not forwarded, whatever its name`(_ field: String) {
        for kind in OwnToken.allCases {
            let text = field.replacing("%", with: kind.prefix + String(repeating: "A1-_", count: 15))
            for bench in [UpstreamHeadBench(), UpstreamHeadBench(strip: "/v1")] {
                let outcome = bench.write(field: text)
                #expect(!outcome.text.contains(kind.prefix), "\(outcome.text)")
                #expect(outcome.fields("Padding-So-That-More-Follows").count == 1 && outcome.fields("Host").count == 1)
            }
            let kept = UpstreamHeadBench(forwardsCredentials: true).write(field: text)
            let isGateways = text.hasPrefix("Forwarded")
            #expect(kept.text.contains(kind.prefix) != isGateways, "\(kept.text)")
        }
    }

    @Test func `a trusted proxy's fields hold none either`() {
        var bench = UpstreamHeadBench()
        bench.isTrusted = true
        for name in ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "X-Real-IP"] {
            let outcome = bench.write(field: "\(name): mak_x")
            #expect(!outcome.text.contains("mak_x"), "\(outcome.text)")
            #expect(outcome.fields("X-Forwarded-For").count == 1 && outcome.fields("X-Forwarded-Proto").count == 1)
            #expect(outcome.fields("X-Forwarded-Host").count == 1)
        }
    }

    @Test(
        arguments: [
            ("a=1; b=mct_x; c=3", "a=1; c=3"), ("b=mct_x", nil), ("a=1;b=\"mat_x\"", "a=1"), ("mak_x; d=4", "d=4"),
            ("a=format_x", "a=format_x"),
        ] as [(String, String?)])
    func `a cookie that holds one is cut, and the others stay`(_ value: String, _ expected: String?) {
        let outcome = UpstreamHeadBench().write(field: "Cookie: \(value)")
        #expect(outcome.fields("Cookie") == (expected.map { ["Cookie:\($0.hasPrefix(" ") ? "" : " ")\($0)"] } ?? []))
        let kept = UpstreamHeadBench(forwardsCredentials: true).write(field: "Cookie: \(value)")
        #expect(kept.fields("Cookie") == ["Cookie: \(value)"])
    }

    @Test func `a host and a path may look like one`() {
        let outcome = UpstreamHeadBench().write("GET /mat_a HTTP/1.1\r\nHost: mat_a\r\nAccept: x\r\n\r\n")
        #expect(outcome.lines.prefix(3) == ["GET /mat_a HTTP/1.1", "Host: mat_a", "Accept: x"])
    }

    @Test func `a trailer that holds one is not forwarded`() {
        let bench = UpstreamHeadBench()
        #expect(bench.forwarded(trailers: "X-Sum: mak_x\r\nX-Other: 1\r\nDPoP: a\r\n") == "X-Other: 1\r\n")
        let kept = UpstreamHeadBench(forwardsCredentials: true)
        #expect(kept.forwarded(trailers: "X-Sum: mak_x\r\nDPoP: a\r\n") == "X-Sum: mak_x\r\nDPoP: a\r\n")
    }

    @Test(arguments: ["DPoP", "dpop", "D-PoP", "D_P_o_P"])
    func `a proof of a key is forwarded only with the credential`(_ name: String) {
        #expect(!UpstreamHeadBench().write(field: "\(name): eyJ").text.contains("eyJ"))
        #expect(UpstreamHeadBench(forwardsCredentials: true).write(field: "\(name): eyJ").text.contains("eyJ"))
    }
}
