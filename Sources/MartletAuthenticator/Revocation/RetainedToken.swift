internal import MartletCore
package import MartletProvider

/// The token that a long exchange was admitted with.
struct RetainedToken {
    enum State { case valid, pending, submitted }

    let token: Secret
    let form: CredentialForm
    /// Whether it is a session's.
    var isSession: Bool { form == .session || form == .cookie }
    /// The route of a new configuration that it is verified for, or −1.
    var route = -1
    var state = State.valid
    /// When the store may be queried next.
    var dueAt: Int64 = 0

    var credential: Credential { token.withBytes { form.credential($0) } }
}

/// A retained token that is due for revalidation.
package struct Revalidation: Sendable {
    package let exchange: ExchangeID
    package let credential: Credential
    /// What verifies it; `nil` when nothing does any more, and the credential has to end.
    package let target: Verifier.Target?
}

/// What a new configuration says about an exchange in progress.
package enum Reevaluation: Equatable, Sendable {
    case stays
    case ends
    /// Its credential has to be verified for that route.
    case revalidate(route: Int)
}
