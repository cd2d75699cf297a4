package import MartletCore

/// What proofs are accepted.
package struct DPoPPolicy: Sendable {
    /// The algorithms of proofs; those of HMAC have no effect.
    package var algorithms: Set<SignatureAlgorithm>
    /// How long after its `iat` a proof is accepted, in seconds.
    package var maximumAge: Int64
    /// How far ahead of the gateway's clock `iat` may be, in seconds.
    package var maximumSkew: Int64

    package init(algorithms: Set<SignatureAlgorithm>, maximumAge: Int64, maximumSkew: Int64) {
        self.algorithms = algorithms
        self.maximumAge = maximumAge
        self.maximumSkew = maximumSkew
    }
}

/// The request that a proof has to be for.
package struct DPoPRequest: Sendable {
    package let method: String
    package let target: DPoPTarget
    /// The access token in the request; `nil` where it has none, as at a login (RFC 9449 §5).
    package let accessToken: [UInt8]?

    package init(method: String, target: DPoPTarget, accessToken: [UInt8]?) {
        self.method = method
        self.target = target
        self.accessToken = accessToken
    }
}

/// What a valid proof shows. It is not to be accepted before its ``replayKey`` has been recorded as new.
package struct DPoPConfirmation: Sendable, Equatable {
    /// The JWK thumbprint of the client's key, as `cnf.jkt` has it (RFC 9449 §6.1).
    package let thumbprint: String
    /// A hash of the key and `jti`: a second proof with the same one is a replay (RFC 9449 §11.1).
    ///
    /// The key is part of it, so that clients cannot use up the values of others.
    package let replayKey: String
    /// The last second in which the proof is accepted: how long the replay key has to be recorded.
    package let acceptedUntil: UnixTime
}
