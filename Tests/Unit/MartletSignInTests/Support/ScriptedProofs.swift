import MartletCore
import MartletProvider
import MartletSignIn
import MartletTesting

/// Verifies proofs that are written as the thumbprint of their key, a space, and an id.
final class ScriptedProofs: KeyProofVerifying {
    static let ours = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    static let other = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

    private let used = Box<[String]>([])
    private let outage = Box(false)
    private let tokens = Box<[String?]>([])

    /// The proofs that were marked.
    var marked: [String] { used.value }
    /// The access tokens of the proofs that were marked.
    var accessTokens: [String?] { tokens.value }

    /// Whether none can be marked.
    var isUnavailable: Bool {
        get { outage.value }
        set { outage.withLock { $0 = newValue } }
    }

    func verify(
        _ proof: KeyProof, by thumbprint: String?, for owner: WorkOwner, at now: UnixTime
    ) async throws(AuthenticationError) -> String {
        guard let text = proof.proofs.first.map({ String(decoding: $0, as: UTF8.self) }) else {
            throw .rejected("dpop.missing")
        }
        guard proof.proofs.count == 1 else { throw .rejected("dpop.repeated") }
        let parts = text.split(separator: " ").map(String.init)
        guard parts.count == 2, parts[0].count == 43 else { throw .rejected("dpop.malformed") }
        if let thumbprint, thumbprint != parts[0] { throw .rejected("dpop.wrong_key") }
        guard !isUnavailable else { throw .unavailable("dpop.store_unavailable") }
        let isFirst = used.withLock { used in
            defer { used.append(text) }
            return !used.contains(text)
        }
        guard isFirst else { throw .rejected("dpop.replayed") }
        tokens.withLock { $0.append(proof.accessToken.map { String(decoding: $0, as: UTF8.self) }) }
        return parts[0]
    }
}
