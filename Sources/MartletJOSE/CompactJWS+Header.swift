extension CompactJWS {
    /// The algorithm that the header claims, if it is allowed. Verification uses the algorithm of the key.
    /// - Throws: `alg_not_allowed`.
    public func algorithm(among allowed: Set<SignatureAlgorithm>) throws(JOSEError) -> SignatureAlgorithm {
        guard let algorithm = header.algorithm, allowed.contains(algorithm) else {
            throw JOSEError(.algorithmNotAllowed, "the algorithm is not allowed")
        }
        return algorithm
    }

    /// Rejects header fields that must be understood or must not be followed, and types other than JWT.
    /// - Throws: `header_not_allowed`.
    public func checkHeaderFields() throws(JOSEError) {
        if let error = header.error { throw error }
        guard header.type == .none || header.type == .jwt else { throw Self.otherType("JWT") }
    }

    /// Rejects header fields that must be understood or must not be followed, and other types than the accepted ones.
    /// - Parameter types: ``TokenType/other`` among them accepts nothing.
    /// - Throws: `header_not_allowed`.
    public func checkHeaderFields(accepting types: [TokenType]) throws(JOSEError) {
        if let error = header.error { throw error }
        guard header.type != .other, types.contains(header.type) else {
            let hasAccessTokens = types.contains(.accessToken)
            throw Self.otherType(types.contains(.jwt) ? hasAccessTokens ? "JWT or at+jwt" : "JWT" : "at+jwt")
        }
    }

    private static func otherType(_ expected: String) -> JOSEError {
        JOSEError(.headerNotAllowed, "the token's type is not \(expected)")
    }

    /// The key ID of the header; there is no default key.
    /// - Throws: `unknown_key`.
    public func keyID() throws(JOSEError) -> KeyID {
        guard let id = header.keyID else { throw JOSEError(.unknownKey, "the header names no key") }
        return id
    }
}
