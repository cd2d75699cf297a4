internal import MartletCore

/// What a refresh shows of the client's key.
package struct RefreshKey: Sendable, Equatable {
    /// What a refresh does about the key of its session.
    enum Decision: Equatable {
        /// The session stays as it is.
        case keeps
        /// The session was a bearer's, and is bound from now on.
        case binds(String)
        case refused(ErrorCode)
    }

    /// No proof, and none is required.
    package static let none = RefreshKey(thumbprint: nil, isRequired: false)

    /// The thumbprint of the key that the request has proved; `nil` without a proof.
    package let thumbprint: String?
    /// Whether a session that is not bound to a key needs a proof, too.
    package let isRequired: Bool

    package init(thumbprint: String?, isRequired: Bool) {
        self.thumbprint = thumbprint
        self.isRequired = isRequired
    }

    /// - Parameter bound: the thumbprint of the session's key; `nil` for a bearer's.
    func decision(forSessionOf bound: String?) -> Decision {
        guard let thumbprint else { return bound != nil || isRequired ? .refused(.sessionProofMissing) : .keeps }
        guard let bound else { return .binds(thumbprint) }
        return bound.hasSameBytes(as: thumbprint) ? .keeps : .refused(.sessionWrongKey)
    }

    /// Why a refresh is refused whose token is bound to another key than the one that was proved, if any.
    var rejection: SessionError { SessionError(thumbprint == nil ? .sessionProofMissing : .sessionWrongKey, .unproven) }
}
