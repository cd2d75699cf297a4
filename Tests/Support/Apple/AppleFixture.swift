import Foundation

/// A simulated Apple: an HTTP server with a document of keys, and the private halves to sign with.
package final class AppleFixture: Sendable {
    package let key: SigningKey
    private let server: Box<ScriptedUpstream>
    private let keys: Box<[SigningKey]>
    private let override = Box<ScriptedUpstream.Script?>(nil)

    /// Starts the server with one RSA key, ``SigningKey/shared()``.
    package init() throws {
        key = try SigningKey.shared()
        keys = Box([key])
        server = Box(try Self.serve(on: .loopback(0), keys, override))
    }

    /// Where the document is.
    package var url: String { server.value.url + "/auth/keys" }
    /// How often the document was asked for.
    package var fetches: Int { server.value.requests.count }

    /// A provider block for `providers:` that trusts this Apple.
    package func provider(_ more: String = "") -> String {
        var text = "apple:\n  kind: apple\n  audiences: [com.example.app, com.example.web]\n  jwks_url: \(url)\n"
        for line in more.split(separator: "\n") { text += "  \(line)\n" }
        return text
    }

    /// A good token of a subject.
    package func token(subject: String = "001234.0123456789abcdef0123456789abcdef.0001") throws -> String {
        try Token(kid: key.identifier, subject: subject).signed(by: key)
    }

    /// A token with changes.
    package func token(_ change: (inout Token) -> Void) throws -> String {
        var token = Token(kid: key.identifier)
        change(&token)
        return try token.signed(by: key)
    }

    /// Serves other keys from now on.
    package func setKeys(_ fresh: [SigningKey]) { keys.withLock { $0 = fresh } }

    /// Responds differently from now on; `nil` serves the keys again.
    package func respond(with script: ScriptedUpstream.Script?) { override.withLock { $0 = script } }

    /// Ends the server: connections are refused.
    package func stop() { server.value.stop() }

    /// Starts it again on the same port.
    package func restart() throws {
        let endpoint = server.value.endpoint
        let fresh = try Self.serve(on: endpoint, keys, override)
        server.withLock { $0 = fresh }
    }

    /// The document of some keys.
    package static func document(_ keys: [SigningKey]) throws -> [UInt8] {
        let object = ["keys": try keys.map { try $0.jwk() }]
        return Array(try JSONSerialization.data(withJSONObject: object))
    }

    private static func serve(
        on endpoint: Endpoint, _ keys: Box<[SigningKey]>, _ override: Box<ScriptedUpstream.Script?>
    ) throws -> ScriptedUpstream {
        try ScriptedUpstream(on: endpoint) { exchange in
            if let script = override.value { return try script(exchange) }
            try exchange.respond(200, [("Content-Type", "application/json")], bytes: try document(keys.value))
        }
    }
}
