private import MartletCore
package import MartletCrypto
package import MartletJSON

/// An identity token in the making: change header and claims at will, then sign.
package struct IdentityToken: Sendable {
    package var header: JSONObject
    package var claims: JSONObject

    package init(header: JSONObject, claims: JSONObject) {
        self.header = header
        self.claims = claims
    }

    /// The compact form, signed by a key whatever the header says.
    package func signed(by key: PrivateKey) throws(CryptoError) -> String {
        let input = "\(Base64URL.encode(JSON.write(header))).\(Base64URL.encode(JSON.write(claims)))"
        return "\(input).\(Base64URL.encode(try key.sign(Array(input.utf8))))"
    }
}
