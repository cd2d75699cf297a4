internal import MartletCore
private import MartletCrypto
private import MartletProvider

/// Checks that the other members of a login are bound to its identity token, which has been verified.
struct LoginChecks {
    /// `c_hash` is the first half of the digest (OIDC Core §3.3.2.11).
    private static let codeHashBytes = 16

    let request: LoginRequest
    let configuration: AppleConfiguration
    let token: VerifiedToken

    /// The `user` that the app sent must be the token's subject.
    func checkUser() throws(AppleError) {
        guard let user = request.user else { return }
        guard user.hasSameBytes(as: token.identity.providerSubject) else { throw .userMismatch }
    }

    /// A code must be the one that Apple issued with this token.
    ///
    /// Without `c_hash` in the token only an exchange shows whose code it is.
    func checkCode() throws(AppleError) {
        guard let code = request.authorizationCode else { return }
        try Self.check(code, of: token)
    }

    /// Checks a code by the `c_hash` of the token that came with it, if there is one.
    static func check(_ code: Secret, of token: VerifiedToken) throws(AppleError) {
        guard let expected = try token.claims.binding(.codeHash) else { return }
        guard areEqual(halfHash(of: code), expected) else { throw .codeMismatch }
    }

    /// The form of `c_hash` and `at_hash`.
    static func halfHash(of secret: Secret) -> String {
        Base64URL.encode(Array(secret.withBytes { SHA256.digest($0) }.prefix(codeHashBytes)))
    }

    /// Body and token must agree on the nonce.
    /// - Returns: the raw nonce to consume, if there is one.
    func checkNonce() throws(AppleError) -> String? {
        if configuration.nonce == .off { return nil }
        let claim = try token.claims.binding(.nonce)
        guard let nonce = request.nonce, let claim else {
            // Accepting a nonce in only one of them would let the holder of a stolen token leave its nonce out.
            if request.nonce == nil, claim == nil, configuration.nonce == .optional { return nil }
            throw request.nonce == nil ? .nonceNotSent : .nonceMissing
        }
        let sent = Self.sent(nonce, as: configuration.nonceForm(of: token.audience))
        guard Self.areEqual(sent, claim) else { throw .nonceMismatch }
        return nonce
    }

    /// A nonce as it is in the request to Apple, which the token repeats.
    static func sent(_ nonce: String, as form: AppleConfiguration.NonceForm) -> String {
        switch form {
        case .raw: nonce
        case .sha256Hex: Hexadecimal.text(SHA256.digest(Array(nonce.utf8)))
        }
    }

    /// Compares in constant time.
    static func areEqual(_ left: String, _ right: String) -> Bool {
        ConstantTime.areEqual(Array(left.utf8), Array(right.utf8))
    }
}
