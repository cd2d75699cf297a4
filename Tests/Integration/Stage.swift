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

/// A gateway that trusts a simulated Apple, before one scripted upstream.
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

/// Checks that a response is the gateway's own rejection, whole and well-formed.
func expectRejection(
    _ response: HTTPMessage, _ status: Int, _ code: String, _ what: String = "",
    at location: SourceLocation = #_sourceLocation
) {
    let note = Comment(rawValue: "\(what) \(response)")
    #expect(response.status == status, note, sourceLocation: location)
    #expect(response["Content-Type"]?.hasPrefix("application/problem+json") == true, note, sourceLocation: location)
    #expect(response.member("code") == code, note, sourceLocation: location)
    #expect(response.object["status"] as? Int == status, note, sourceLocation: location)
    #expect(response.member("type") != nil && response.member("title") != nil, note, sourceLocation: location)
    let identifier = response["X-Request-Id"] ?? ""
    #expect(!identifier.isEmpty && response.member("request_id") == identifier, note, sourceLocation: location)
    #expect(response.end == .complete, note, sourceLocation: location)
}

/// Checks a rejection that says how long to wait.
func expectUnavailable(_ response: HTTPMessage, _ what: String = "", at location: SourceLocation = #_sourceLocation) {
    expectRejection(response, 503, "auth_unavailable", what, at: location)
    let seconds = Int(response["Retry-After"] ?? "") ?? 0
    #expect(seconds >= 1, "Retry-After: \(response["Retry-After"] ?? "none")", sourceLocation: location)
}

/// Checks a 401 and its challenge.
func expectUnauthorized(
    _ response: HTTPMessage, _ code: String, _ what: String = "", at location: SourceLocation = #_sourceLocation
) {
    expectRejection(response, 401, code, what, at: location)
    let challenge =
        code == "credential_missing" ? #"Bearer realm="martlet""# : #"Bearer realm="martlet", error="invalid_token""#
    #expect(response["WWW-Authenticate"] == challenge, Comment(rawValue: what), sourceLocation: location)
}
