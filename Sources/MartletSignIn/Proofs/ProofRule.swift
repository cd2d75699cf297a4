internal import MartletConfig

/// What a request that gets tokens has to prove.
enum ProofRule: Equatable {
    /// A proof is ignored, and none is missed.
    case ignored
    /// The proof has to hold.
    case verified
    /// A proof is missing.
    case missing
    /// Only a session that is bound to a key needs the proof.
    case verifiedIfBound

    /// At a login, or where a code is exchanged: `sessions.dpop` alone decides.
    init(creatingBy setting: SessionBinding, isPresented: Bool) {
        self =
            switch setting {
            case .off: .ignored
            case .optional: isPresented ? .verified : .ignored
            case .required: isPresented ? .verified : .missing
            }
    }

    /// At a refresh: a session that was bound under another setting stays bound.
    init(refreshingBy setting: SessionBinding, isPresented: Bool) {
        self =
            switch setting {
            case .off: isPresented ? .verifiedIfBound : .ignored
            // Without a proof the session is asked: it says what is missing, and changes nothing.
            case .optional, .required: isPresented ? .verified : .ignored
            }
    }
}
