import MartletTesting
import Testing

/// A gateway that lets everything through to one scripted upstream.
func withOpenGateway(
    server: String = "", upstream more: String = "", routes: String = GatewayConfig.open, readsBodies: Bool = true,
    script: @escaping ScriptedUpstream.Script = { try $0.respond(200, body: "ok") },
    _ body: (Gateway, ScriptedUpstream) throws -> Void
) throws {
    let upstream = try ScriptedUpstream(readsBodies: readsBodies, script)
    let config = GatewayConfig(endpoints: [upstream.url], upstream: more, server: server, routes: routes)
    try withMartlet(config.text) { try body($0, upstream) }
}

/// A gateway that trusts a pretended Apple, before one scripted upstream.
///
/// By default `/public/**` is open, `/maybe/**` takes callers with and without a credential, all else wants one.
func withAppleGateway(
    routes: String = GatewayConfig.closed, provider: String = "", server: String = "", more: String = "",
    apple: AppleFixture? = nil, script: @escaping ScriptedUpstream.Script = { try $0.respond(200, body: "ok") },
    _ body: (Gateway, ScriptedUpstream, AppleFixture) throws -> Void
) throws {
    let apple = try apple ?? AppleFixture()
    let upstream = try ScriptedUpstream(script)
    var config = GatewayConfig(
        endpoints: [upstream.url], providers: apple.provider(provider), server: server, routes: routes)
    config.more = more
    try withMartlet(config.text) { try body($0, upstream, apple) }
}

/// The field that carries a token.
func bearer(_ token: String) -> [(String, String)] { [("Authorization", "Bearer \(token)")] }

/// Checks that an answer is the gateway's own refusal, whole and well-formed.
func expectRefusal(
    _ answer: HTTPMessage, _ status: Int, _ code: String, _ what: String = "",
    at location: SourceLocation = #_sourceLocation
) {
    let note = Comment(rawValue: "\(what) \(answer)")
    #expect(answer.status == status, note, sourceLocation: location)
    #expect(answer["Content-Type"]?.hasPrefix("application/problem+json") == true, note, sourceLocation: location)
    #expect(answer.member("code") == code, note, sourceLocation: location)
    #expect(answer.object["status"] as? Int == status, note, sourceLocation: location)
    #expect(answer.member("type") != nil && answer.member("title") != nil, note, sourceLocation: location)
    let identifier = answer["X-Request-Id"] ?? ""
    #expect(!identifier.isEmpty && answer.member("request_id") == identifier, note, sourceLocation: location)
    #expect(answer.end == .complete, note, sourceLocation: location)
}

/// Checks a refusal that says how long to stay away.
func expectUnavailable(_ answer: HTTPMessage, _ what: String = "", at location: SourceLocation = #_sourceLocation) {
    expectRefusal(answer, 503, "auth_unavailable", what, at: location)
    let seconds = Int(answer["Retry-After"] ?? "") ?? 0
    #expect(seconds >= 1, "Retry-After: \(answer["Retry-After"] ?? "none")", sourceLocation: location)
}

/// Checks a 401 and its challenge.
func expectUnauthorized(
    _ answer: HTTPMessage, _ code: String, _ what: String = "", at location: SourceLocation = #_sourceLocation
) {
    expectRefusal(answer, 401, code, what, at: location)
    let challenge =
        code == "credential_missing" ? #"Bearer realm="martlet""# : #"Bearer realm="martlet", error="invalid_token""#
    #expect(answer["WWW-Authenticate"] == challenge, Comment(rawValue: what), sourceLocation: location)
}
