internal import MartletAccounts
internal import MartletCore
internal import MartletProxy
internal import MartletSession

/// What the rooms below say, in terms of the one map to answers.
extension Failure {
    static func session(_ error: SessionError) -> Failure {
        switch error.kind {
        case .invalid: credentialInvalid(error.code)
        case .unavailable: authUnavailable(error.code)
        case .throttled: throttled(error.code, retryAfter: 1)
        }
    }

    static func account(_ error: AccountError) -> Failure {
        switch error.kind {
        case .unavailable: authUnavailable(error.code)
        case .conflict, .lastIdentity, .duplicateUser: identityConflict(error.code)
        case .notFound: notFound(error.code)
        }
    }

    static func store(_ error: StoreError) -> Failure { authUnavailable(error.code) }
}
