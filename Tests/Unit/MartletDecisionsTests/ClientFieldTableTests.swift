import MartletConfig
import MartletHTTP
import Testing

@testable import MartletDecisions

@Suite struct ClientFieldTableTests {
    /// The kind of a field with this name, in a head or a trailer section.
    private func kind(
        _ name: String, reserved: [String] = [], stripped: [String] = ServerConfiguration.defaultStrippedHeaders,
        cutsCookies: Bool = false
    ) -> ClientField? {
        let table = ClientField.table(
            reserved: FieldNameSet(reserved, reservesAuthPrefix: true), stripped: stripped, cutsCookies: cutsCookies)
        let bytes = Array("\(name): x\r\nPadding-So-That-More-Follows: y\r\n".utf8)
        var offset = 0
        guard let field = TrailerLines.next(bytes.span, from: &offset) else { return nil }
        return ClientField(code: table.value(of: field, in: bytes.span))
    }

    @Test(
        arguments: [
            ("Connection", .own), ("Content-Length", .own), ("Transfer-Encoding", .own), ("TE", .own),
            ("Upgrade", .own), ("Keep-Alive", .own), ("Proxy-Connection", .own), ("Proxy-Authorization", .own),
            ("Proxy-Authenticate", .own), ("X-Request-Id", .own), ("Via", .via), ("Host", .host), ("Expect", .expect),
            ("Trailer", .trailer), ("Authorization", .authorization), ("Forwarded", .forwarded),
            ("X-Forwarded-For", .forwardedFor), ("X-Forwarded-Proto", .forwardedProto),
            ("X-Forwarded-Host", .forwardedHost),
        ] as [(String, ClientField)])
    func `a field that the gateway acts on has a kind of its own, whatever is configured`(
        _ name: String, _ expected: ClientField
    ) {
        #expect(kind(name) == expected)
        #expect(kind(name.uppercased()) == expected && kind(name.lowercased()) == expected)
        #expect(kind(name, stripped: []) == expected)
        #expect(kind(name, stripped: [name]) == expected)
    }

    @Test(arguments: [
        "-Content-Length", "Content--Length", "Content-Length-", "ContentLength", "-Transfer-Encoding",
        "Transfer--Encoding", "TransferEncoding-",
    ])
    func `framing in another spelling is not forwarded`(_ name: String) {
        #expect(kind(name) == .own)
        #expect(kind(name.uppercased()) == .own && kind(name.lowercased()) == .own)
    }

    @Test func `a cookie has a kind of its own where the gateway has cookies, and never passes by a list`() {
        #expect(kind("Cookie") == .plain && kind("COOKIE", cutsCookies: true) == .cookie)
        #expect(kind("Cookie", stripped: ["Cookie"]) == .proxyOnly)
        #expect(kind("Cookie", stripped: ["cookie"], cutsCookies: true) == .own)
        #expect(kind("Cookie", reserved: ["Cookie"], cutsCookies: true) == .identity)
    }

    @Test(
        arguments: [
            ("X-Forwarded-Port", .proxyOnly, .proxyOnly), ("X-Forwarded-Prefix", .proxyOnly, .proxyOnly),
            ("X-Forwarded-Uri", .proxyOnly, .plain), ("X-Forwarded-Method", .proxyOnly, .plain),
            ("X-Original-URI", .proxyOnly, .plain), ("X-Original-Method", .proxyOnly, .plain),
            ("X-Original-URL", .proxyOnly, .plain), ("X-Rewrite-URL", .proxyOnly, .plain),
            ("X-Real-IP", .proxyOnly, .plain), ("Remote-User", .proxyOnly, .plain),
            ("X-HTTP-Method-Override", .methodOverride, .plain), ("X-HTTP-Method", .methodOverride, .plain),
            ("X-Method-Override", .methodOverride, .plain), ("X-Original-Host", .plain, .plain),
            ("X-Forwarded-Anything", .proxyOnly, .proxyOnly), ("X-Forwarded", .proxyOnly, .proxyOnly),
            ("Cookie", .plain, .plain), ("Set-Cookie", .plain, .plain), ("Content-Type", .plain, .plain),
            ("Date", .plain, .plain), ("Traceparent", .plain, .plain), ("Sec-WebSocket-Key", .plain, .plain),
            ("WWW-Authenticate", .plain, .plain), ("Max-Forwards", .plain, .plain), ("A", .plain, .plain),
        ] as [(String, ClientField, ClientField)])
    func `the list of stripped names decides about the others`(
        _ name: String, _ byDefault: ClientField, _ byEmptyList: ClientField
    ) {
        #expect(kind(name) == byDefault)
        #expect(kind(name.lowercased()) == byDefault)
        #expect(kind(name, stripped: []) == byEmptyList)
    }

    @Test(arguments: ["Cookie", "Content-Type", "Date", "X-Original-Host", "X-Own", "Traceparent"])
    func `any other field may be stripped, in every spelling`(_ name: String) {
        #expect(kind(name) == .plain)
        #expect(kind(name, stripped: [name]) == .proxyOnly)
        #expect(kind(name, stripped: [name.replacing("-", with: "_").lowercased()]) == .proxyOnly)
        #expect(kind(name.replacing("-", with: "_"), stripped: [name]) == .proxyOnly)
        #expect(kind(name + "s", stripped: [name]) == .plain)
    }

    @Test(arguments: ["X-Own", "Date", "X-Real-IP", "X-Forwarded-Port", "X-HTTP-Method", "X-Forwarded-Uri"])
    func `an identity header is one, whether it is stripped or not`(_ name: String) {
        for stripped in [[], [name], ServerConfiguration.defaultStrippedHeaders] {
            #expect(kind(name, reserved: [name], stripped: stripped) == .identity)
            #expect(kind(name.replacing("-", with: "_"), reserved: [name], stripped: stripped) == .identity)
        }
    }

    @Test(
        arguments: [
            ("X-Auth-Subject", .identity), ("x-auth-anything", .identity), ("X_Auth_Subject", .identity),
            ("XAuth-Email", .identity), ("XAuthEmail", .identity), ("X.Auth.Email", .identity),
            ("-X-Auth-Email", .identity), ("X-Auth", .plain), ("X-Authority", .plain),
            ("X-Authenticated", .plain), ("Auth-Subject", .plain),
        ] as [(String, ClientField)])
    func `every name of the family of identity headers is one`(_ name: String, _ expected: ClientField) {
        #expect(kind(name) == expected)
    }

    @Test func `an unknown code counts as a field of the gateway`() {
        for code in UInt8(0)...16 { #expect(ClientField(code: code).rawValue == code) }
        for code in UInt8(17)...255 { #expect(ClientField(code: code) == .own) }
    }
}
