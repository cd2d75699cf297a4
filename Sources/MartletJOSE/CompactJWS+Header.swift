internal import MartletJSON

extension CompactJWS {
    /// The algorithm that the header claims, if it is allowed. Verification uses the algorithm of the key.
    /// - Throws: `alg_not_allowed`.
    public func algorithm(among allowed: Set<SignatureAlgorithm>) throws(JOSEError) -> SignatureAlgorithm {
        guard let algorithm = header.algorithm, allowed.contains(algorithm) else {
            let names = allowed.map(\.rawValue).sorted().joined(separator: ", ")
            throw JOSEError(
                .algorithmNotAllowed, "the algorithm is not allowed: alg is \(shown("alg")), not \(names)")
        }
        return algorithm
    }

    /// Rejects header fields that must be understood or must not be followed, and types other than JWT.
    /// - Throws: `header_not_allowed`.
    public func checkHeaderFields() throws(JOSEError) {
        if let error = header.error { throw error }
        guard header.type == .none || header.type == .jwt else { throw otherType("JWT") }
    }

    /// Rejects header fields that must be understood or must not be followed, and other types than the accepted ones.
    /// - Parameter types: ``TokenType/other`` among them accepts nothing.
    /// - Throws: `header_not_allowed`.
    public func checkHeaderFields(accepting types: [TokenType]) throws(JOSEError) {
        if let error = header.error { throw error }
        guard header.type != .other, types.contains(header.type) else {
            let hasAccessTokens = types.contains(.accessToken)
            throw otherType(types.contains(.jwt) ? hasAccessTokens ? "JWT or at+jwt" : "JWT" : "at+jwt")
        }
    }

    /// Rejects, too, what the issuer of these tokens never writes: ways to name a key other than `kid`, `cty`, and other
    /// spellings of `typ`.
    /// - Throws: `header_not_allowed`.
    public func checkNoUnusualFields() throws(JOSEError) {
        if let error = header.unusualField { throw error }
    }

    private func otherType(_ expected: String) -> JOSEError {
        JOSEError(.headerNotAllowed, "the token's type is not \(expected): typ is \(shown("typ"))")
    }

    /// A field of the header as an operator may see it: a short text without special characters.
    private func shown(_ name: String) -> String {
        guard let value = header.fields[name] else { return "absent" }
        guard let text = value.string else { return "not a string" }
        let scalars = text.unicodeScalars.prefix(32).map { (0x21...0x7E).contains($0.value) ? $0 : "?" }
        return scalars.isEmpty ? "empty" : String(String.UnicodeScalarView(scalars))
    }

    /// The key ID of the header; there is no default key.
    /// - Throws: `unknown_key`.
    public func keyID() throws(JOSEError) -> KeyID {
        guard let id = header.keyID else { throw JOSEError(.unknownKey, "the header names no key") }
        return id
    }
}
