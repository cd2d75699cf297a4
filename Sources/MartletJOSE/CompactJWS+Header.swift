extension CompactJWS {
    /// The algorithm that the header claims, if it is one of those allowed.
    ///
    /// What verifies is the key's own.
    /// - Throws: `alg_not_allowed`.
    public func algorithm(among allowed: Set<SignatureAlgorithm>) throws(JOSEError) -> SignatureAlgorithm {
        guard let algorithm = header.algorithm, allowed.contains(algorithm) else {
            throw JOSEError(.algorithmNotAllowed, "the algorithm is not allowed")
        }
        return algorithm
    }

    /// Refuses fields that must be understood or must not be followed, and tokens of another type than JWT.
    /// - Throws: `header_not_allowed`.
    public func checkHeaderFields() throws(JOSEError) {
        if let problem = header.problem { throw problem }
    }

    /// The key that the header names; there is no default key.
    /// - Throws: `unknown_key`.
    public func keyID() throws(JOSEError) -> KeyID {
        guard let id = header.keyID else { throw JOSEError(.unknownKey, "the header names no key") }
        return id
    }
}
