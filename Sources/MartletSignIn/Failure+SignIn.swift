internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletResponder
internal import MartletSession

/// Maps the errors of stores and budgets to failures.
extension Failure {
    static func session(_ error: SessionError) -> Failure {
        switch error.kind {
        case .invalid: credentialInvalid(error.code)
        case .denied: notAllowed(error.code)
        case .unavailable: authUnavailable(error.code)
        case .throttled: throttled(error.code, retryAfter: 1)
        case .unproven: proofInvalid(error.code)
        }
    }

    static func account(_ error: AccountError) -> Failure {
        switch error.kind {
        case .unavailable: authUnavailable(error.code)
        case .identityTaken, .duplicateUser: identityTaken(error.code)
        case .providerAlreadyLinked: providerAlreadyLinked(error.code)
        case .lastIdentity: lastIdentity(error.code)
        case .notFound: notFound(error.code)
        case .invalidClaims: malformed(error.code)
        case .outdated: credentialInvalid(error.code)
        }
    }

    static func publication(_ error: ClaimPublisher.PublicationError) -> Failure {
        switch error {
        case .accounts(let error): account(error)
        case .sessions(let error): session(error)
        }
    }

    /// 429 with whole seconds, rounded up.
    static func budget(_ error: BudgetExceededError) -> Failure {
        let wait = min(max(error.retryAfter.wholeNanoseconds, 1), 1 << 60)
        return throttled(.signInBudgetExceeded, retryAfter: Int((wait + 999_999_999) / 1_000_000_000))
    }

    /// An outage; 429 for a client that has used up its share of the store.
    static func store(_ error: StoreError) -> Failure {
        guard error.code == .storeShareUsedUp else { return authUnavailable(error.code) }
        return throttled(error.code, retryAfter: Int(StoreError.shareRetryAfter.wholeSeconds))
    }
}
