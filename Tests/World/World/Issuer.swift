import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import WorldMachine

/// Apple, as far as gateways call it: the keys with which it signs, which change.
final class Issuer: Service {
    static let audience = "com.example.app"
    static let name = "https://appleid.apple.com"

    /// One of its keys, and when it was published.
    struct Key {
        let id: String
        let key: PrivateKey
        let published: Int64
        var withdrawn: Int64?
    }

    private let signing: SigningKeys
    private(set) var keys: [Key] = []
    /// A signature takes three quarters of a millisecond: a world has so many.
    private var signaturesLeft = 14
    private var kept: [String: AppleToken] = [:]
    var notificationsLeft = 3
    let grants = GrantBook()

    init(_ simulation: Simulation, _ signing: SigningKeys) {
        self.signing = signing
        super.init(simulation, at: Address(host: 0x7f00_0001, port: 9101), part: "issuer")
        publish()
    }

    var key: Key { keys[keys.count - 1] }
    private var now: Int64 { simulation.machine.now }

    private func publish() { keys.append(Key(id: "KEY\(keys.count)", key: signing.issuer[keys.count], published: now)) }

    /// Signs with another key from now on; the one before is published for a time.
    func rotate(keepingFor time: Int64) {
        guard keys.count < signing.issuer.count - 1 else { return }
        let old = keys.count - 1
        publish()
        simulation.machine.after(time) { [unowned self] in keys[old].withdrawn = now }
    }

    /// Whether gateways have to know a key: it was published for long enough, and still is.
    func isKnown(_ id: String) -> Bool {
        guard let key = keys.first(where: { $0.id == id }), key.withdrawn == nil else { return false }
        return key.published < 1_500_000_000 || now - key.published > 12_000_000_000
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        switch (head.method, head.target) {
        case ("GET", "/auth/keys"):
            let all = keys.filter { $0.withdrawn == nil }.map { key -> JSONValue in
                var members = key.key.publicKey.parts.jwkMembers
                members["kid"] = .string(key.id)
                members["alg"] = "RS256"
                members["use"] = "sig"
                return .object(members)
            }
            let document = JSON.write(JSONValue.object(["keys": .array(all)]))
            return ServiceResponse(json: String(decoding: document, as: UTF8.self))
        case ("POST", "/auth/token"): return issueTokens(body)
        case ("POST", "/auth/revoke"): return revoke(body)
        default: return ServiceResponse("404 Not Found", json: "{}")
        }
    }

    /// A revocation has no other response than 200.
    override func babbles(_ head: MessageHead, _ body: [UInt8]) {
        if head.target == "/auth/revoke" { _ = revoke(body) }
    }

    // MARK: Tokens

    /// A token of a user, which may be one that was issued before.
    /// - Returns: `nil` if no more can be signed.
    func token(of subject: String, _ kind: AppleToken.Kind = .good, nonce: String? = nil) -> AppleToken? {
        let name = "\(kind.rawValue) \(subject)"
        if nonce == nil, let old = kept[name], kind != .good || isKnown(old.keyID), !old.isStale(now) { return old }
        guard kind == .unsigned || signaturesLeft > 0 else { return nil }
        if kind != .unsigned { signaturesLeft -= 1 }
        let token = make(subject, kind, nonce)
        if nonce == nil { kept[name] = token }
        return token
    }

    private func make(_ subject: String, _ kind: AppleToken.Kind, _ nonce: String?) -> AppleToken {
        let issued = simulation.machine.wallTime / 1_000_000_000 - (kind == .expired ? 90_000 : 1)
        var claims: JSONObject = [
            "iss": .string(Self.name), "aud": .string(kind == .otherAudience ? "com.example.other" : Self.audience),
            "exp": .integer(issued + 86_400), "iat": .integer(issued), "sub": .string(subject),
            "email": "abc@privaterelay.appleid.com", "email_verified": "true", "auth_time": .integer(issued),
        ]
        if let nonce { claims["nonce"] = .string(nonce) }
        let id = kind == .unknownKey ? "KEY9" : key.id
        let header: JSONObject = ["kid": .string(id), "alg": kind == .unsigned ? "none" : "RS256"]
        let signer = kind == .unknownKey || kind == .forged ? signing.issuer[signing.issuer.count - 1] : key.key
        return AppleToken(
            text: sign(header, claims, by: kind == .unsigned ? nil : signer), subject: subject, kind: kind, keyID: id,
            nonce: nonce, madeAt: now)
    }

    func sign(_ header: JSONObject, _ claims: JSONObject, by key: PrivateKey?) -> String {
        let input = "\(Base64URL.encode(JSON.write(header))).\(Base64URL.encode(JSON.write(claims)))"
        let signature = (try? key?.sign(Array(input.utf8))) ?? []
        return "\(input).\(Base64URL.encode(signature))"
    }

    /// The next token of a user is a new one.
    func forget(_ subject: String) { kept["\(AppleToken.Kind.good.rawValue) \(subject)"] = nil }
}

/// An identity token.
struct AppleToken {
    /// What it proves: a good one its subject, all others nothing.
    enum Kind: String, CaseIterable { case good, otherAudience, expired, unknownKey, unsigned, forged }

    let text: String
    let subject: String
    let kind: Kind
    let keyID: String
    let nonce: String?
    let madeAt: Int64

    func isStale(_ now: Int64) -> Bool { now - madeAt > 500_000_000_000 }
}
