private import MartletCore
private import MartletCrypto
private import MartletProvider

/// What binds the other members of a login to its identity token, which holds already.
struct LoginChecks {
    /// `c_hash` is the first half of the digest (OIDC Core §3.3.2.11).
    private static let codeHashBytes = 16

    let post: LoginPost
    let configuration: AppleConfiguration
    let token: CheckedToken

    /// The app's word for who it is must be Apple's.
    func checkUser() throws(Refusal) {
        guard let user = post.user else { return }
        guard user.hasSameBytes(as: token.identity.providerSubject) else { throw .userMismatch }
    }

    /// A code must be the one that Apple made with this token.
    ///
    /// A token that tells of none leaves the code unproven: it is not used for anything.
    func checkCode() throws(Refusal) {
        guard let code = post.authorizationCode, let told = try token.claims.binding(.codeHash) else { return }
        let half = Array(code.withBytes { SHA256.digest($0) }.prefix(Self.codeHashBytes))
        guard Self.areEqual(Base64URL.encode(half), told) else { throw .codeMismatch }
    }

    /// Body and token must agree on the nonce.
    /// - Returns: the raw nonce that is to be used up, if there is one.
    func checkNonce() throws(Refusal) -> String? {
        if configuration.nonce == .off { return nil }
        let told = try token.claims.binding(.nonce)
        guard let nonce = post.nonce, let told else {
            // Taking one that stands alone would let whoever has a token leave its nonce out.
            if post.nonce == nil, told == nil, configuration.nonce == .optional { return nil }
            throw .nonceMissing
        }
        let expected =
            switch configuration.nonceForm {
            case .raw: nonce
            case .sha256Hex: Self.hexadecimal(SHA256.digest(Array(nonce.utf8)))
            }
        guard Self.areEqual(expected, told) else { throw .nonceMismatch }
        return nonce
    }

    private static func areEqual(_ left: String, _ right: String) -> Bool {
        ConstantTime.areEqual(Array(left.utf8), Array(right.utf8))
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
