internal import MartletCore
internal import MartletCrypto
package import MartletProvider

extension SessionStore {
    /// Stores the claims of a subject's account, which every verification adds to those of a session.
    @discardableResult
    package func apply(_ claims: VersionedClaims, to subject: String) async throws(SessionError) -> Bool {
        let time = currentTime()
        let bytes = try sealed(ClaimsSeal(subject: subject, sealing).seal(claims))
        let stored = StoredClaims(version: claims.version, bytes: bytes, ends: time.now.later(by: policy.refreshTTL))
        let changed = try await fromStore(await backend.storeClaims(stored, of: SubjectKey(subject), at: time))
        guard let changed else { return false }
        if !changed.isEmpty { await self.changed(changed) }
        return true
    }
}
