import Foundation
import MartletCrypto
import MartletTesting

/// A client's key, with which it proves that a token is its own (RFC 9449).
struct ProofKey {
    let key: SigningKey

    init() throws { key = try SigningKey("proof", .p256) }

    private var jwk: [String: String] {
        get throws { try key.jwk().filter { ["kty", "crv", "x", "y"].contains($0.key) } }
    }

    private func json(_ members: [String: String]) -> String {
        "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",") + "}"
    }

    /// `jkt` of tokens that are bound to it (RFC 7638).
    var thumbprint: String { get throws { base64URL(SHA256.digest(Array(json(try jwk).utf8))) } }

    /// A proof for one request.
    /// - Parameter token: the access token in it; `nil` where tokens are issued.
    func proof(
        _ method: String, _ url: String, for token: String?, id: String = UUID().uuidString, age: Int = 0,
        type: String = "dpop+jwt"
    ) throws -> String {
        let header = #"{"typ":"\#(type)","alg":"ES256","jwk":\#(json(try jwk))}"#
        let hash = token.map { #","ath":"\#(base64URL(SHA256.digest(Array($0.utf8))))""# } ?? ""
        let claims =
            #"{"htm":"\#(method)","htu":"\#(url)","iat":\#(unixNow() - age),"jti":"\#(id)"\#(hash)}"#
        let input = base64URL(Array(header.utf8)) + "." + base64URL(Array(claims.utf8))
        return input + "." + base64URL(try key.signature(over: Array(input.utf8)))
    }
}
