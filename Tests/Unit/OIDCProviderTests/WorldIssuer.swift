import MartletCore
import MartletJSON
import MartletTesting
import Testing

/// An issuer of the world, in the shapes that its documents and tokens have by its own documentation; keys are ours.
struct WorldIssuer: Sendable, CustomTestStringConvertible {
    /// One thing that is wrong with a token: a member of its header or payload, and the reason of its rejection.
    struct Fault: Sendable {
        enum Part: Sendable { case header, claims }

        let part: Part
        let name: String
        let value: JSONValue?
        let code: ErrorCode
    }

    let name: String
    /// The provider's block, as an operator writes it.
    let configuration: String
    /// Where the discovery document is; `nil` if the configuration names the key set.
    var discoveryURL: String?
    var discovery: JSONObject = [:]
    let keysURL: String
    var kind = SigningKey.Kind.rsa(bits: 2048)
    let kid: String
    /// Members of the key's entry besides the key itself; `kid` is added.
    var entry: JSONObject = [:]
    /// Other entries of the key set, before the key.
    var others: [JSONObject] = []
    /// Whether the modulus begins with a zero byte.
    var padsModulus = false
    /// `alg` and `kid` are added.
    var header: JSONObject = ["typ": "JWT"]
    /// Times are added where they are not given.
    let claims: JSONObject
    let issuer: String
    let subject: String
    /// Claims as rules see them.
    var seen: JSONObject = [:]
    let faults: [Fault]

    var testDescription: String { name }

    static let key = Result { try SigningKey("world") }
    static let curve = Result { try SigningKey("world", .p256) }

    var signingKey: SigningKey {
        get throws { if case .p256 = kind { try Self.curve.get() } else { try Self.key.get() } }
    }

    /// The key set, with a key for encryption and certificates where the issuer has them.
    func keySet() throws -> [UInt8] {
        var own = entry
        for (name, value) in try signingKey.jwk() where !["kid", "use", "alg"].contains(name) {
            own[name] = .string(name == "n" && padsModulus ? Self.padded(value) : value)
        }
        own["kid"] = .string(kid)
        let document: JSONObject = ["keys": .array((others + [own]).map { .object($0) })]
        return JSON.write(document)
    }

    private static func padded(_ number: String) -> String {
        Base64URL.encode([0] + (Base64URL.decode(Array(number.utf8)) ?? []))
    }

    /// A token of the issuer, with one thing wrong if a fault is given.
    func token(_ fault: Fault? = nil) throws -> String {
        var header = header
        header["alg"] = .string(kind.algorithm)
        header["kid"] = .string(kid)
        var claims = claims
        for (name, value) in [("iat", Bench.now - 60), ("exp", Bench.now + 3540)] where !claims.has(name) {
            claims[name] = .integer(value)
        }
        switch fault?.part {
        case .header?: header[fault?.name ?? ""] = fault?.value
        case .claims?: claims[fault?.name ?? ""] = fault?.value
        case nil: break
        }
        let input = [header, claims].map { Base64URL.encode(JSON.write($0)) }.joined(separator: ".")
        return "\(input).\(Base64URL.encode(try signingKey.signature(over: Array(input.utf8))))"
    }

    /// A provider with this configuration, whose issuer responds with these documents.
    func bench() throws -> Bench {
        let scripted = try ScriptedIssuer()
        if let discoveryURL {
            var document = discovery
            document["jwks_uri"] = .string(keysURL)
            scripted.respond(at: discoveryURL, document)
        }
        scripted.setDocument(try keySet(), at: keysURL)
        return try Bench(configuration, issuer: scripted)
    }
}

extension WorldIssuer.Fault {
    static func claim(_ name: String, _ value: JSONValue?, _ code: ErrorCode) -> Self {
        Self(part: .claims, name: name, value: value, code: code)
    }

    static func header(_ name: String, _ value: JSONValue?, _ code: ErrorCode) -> Self {
        Self(part: .header, name: name, value: value, code: code)
    }
}
