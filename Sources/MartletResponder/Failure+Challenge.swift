internal import MartletCore
internal import MartletProvider

/// The challenges of error responses.
extension Failure {
    /// `WWW-Authenticate` of routes that accept names and passwords (RFC 7617 §2).
    package static var basicChallenge: StaticString { "Basic realm=\"martlet\", charset=\"UTF-8\"" }

    /// `WWW-Authenticate` of RFC 6750 §3, or of RFC 9470 §3.
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
        case .stepUp(let requirement): requirement.writeChallenge(into: &out)
        }
        return true
    }
}
