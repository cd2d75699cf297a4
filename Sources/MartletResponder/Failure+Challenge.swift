package import MartletCore
internal import MartletProvider

/// The challenges of error responses.
extension Failure {
    /// A credential without the proof that it is bound to (RFC 9449 §7.1): another proof is needed, and no other
    /// credential.
    package static func proofInvalid(_ reason: ErrorCode) -> Failure {
        Failure(status: 401, code: "dpop_proof_invalid", reason: reason, challenge: .unproven)
    }

    /// A credential without the client certificate that it is bound to (RFC 8705 §3).
    package static func certificateInvalid(_ reason: ErrorCode) -> Failure {
        Failure(status: 401, code: "credential_invalid", reason: reason, challenge: .unproven)
    }

    /// The algorithms of DPoP proofs, separated by spaces (RFC 9449 §5.1).
    package static var proofAlgorithms: StaticString { "ES256 ES384 ES512 EdDSA PS256" }

    /// `WWW-Authenticate` of routes that accept names and passwords (RFC 7617 §2).
    package static var basicChallenge: StaticString { "Basic realm=\"martlet\", charset=\"UTF-8\"" }

    /// `WWW-Authenticate` of RFC 6750 §3, RFC 9449 §7.1 or RFC 9470 §3.
    package var challengeText: String? {
        var text = ByteBuffer(capacity: 256)
        return writeChallenge(into: &text) ? unsafe String(decoding: text.bytes, as: UTF8.self) : nil
    }

    /// Writes the value of `WWW-Authenticate`.
    /// - Returns: whether there is one.
    func writeChallenge(into out: inout ByteBuffer) -> Bool {
        switch challenge {
        case .none: return false
        case .missing: out.append("Bearer realm=\"martlet\"")
        case .invalid: out.append("Bearer realm=\"martlet\", error=\"invalid_token\"")
        case .insufficient: out.append("Bearer realm=\"martlet\", error=\"insufficient_scope\"")
        case .unproven:
            out.append("DPoP realm=\"martlet\", error=\"invalid_dpop_proof\", algs=\"")
            out.append(Failure.proofAlgorithms)
            out.append("\"")
        case .stepUp(let requirement): requirement.writeChallenge(into: &out)
        }
        return true
    }
}
