/// What has happened to sessions and subjects, by their revocation IDs: see ``SubjectRevocationID``.
package enum CredentialChange: Sendable, Equatable {
    /// Sessions have ended, or the identities or passwords of subjects have changed: what they have admitted ends.
    case ended([UInt64])
    /// Sessions or subjects have changed, such as one who has authenticated again: what they have admitted goes on if
    /// its route still allows it.
    case changed([UInt64])

    package var revocationIDs: [UInt64] {
        switch self {
        case .ended(let ids), .changed(let ids): ids
        }
    }
}
