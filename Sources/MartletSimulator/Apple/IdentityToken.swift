private import MartletCore
package import MartletCrypto
package import MartletJSON

/// An unsigned identity token, whose header and claims may be changed.
package struct IdentityToken: Sendable {
    package var header: JSONObject
    package var claims: JSONObject

    package init(header: JSONObject, claims: JSONObject) {
        self.header = header
        self.claims = claims
    }

    /// The compact form, signed with a key regardless of the header.
    package func signed(by key: PrivateKey) throws(CryptoError) -> String {
        let input = "\(Base64URL.encode(JSON.write(header))).\(Base64URL.encode(JSON.write(claims)))"
        return "\(input).\(Base64URL.encode(try key.sign(Array(input.utf8))))"
    }
}
