package import MartletCore

/// An authentication of a session's owner: when it took place, and what it proved.
package struct SessionProof: Sendable, Equatable {
    /// The claim with the level of an authentication (OpenID Connect Core §2).
    package static let levelClaim = "acr"

    package let authTime: UnixTime
    /// The level; `nil` if the provider states none.
    package let acr: String?

    package init(authTime: UnixTime, acr: String?) {
        self.authTime = authTime
        self.acr = acr
    }
}
