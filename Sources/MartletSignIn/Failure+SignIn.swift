internal import MartletAccounts
internal import MartletBrowser
internal import MartletCore
internal import MartletCrypto
internal import MartletIdentities
internal import MartletProvider
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

    /// How long the client has to wait, in seconds, as pages say it.
    var wait: Int64 { Int64(max(retryAfter, 1)) }
}

// MARK: - Values from other modules, whose errors become failures

func fromAccounts<Value>(
    _ value: @autoclosure () async throws(AccountError) -> Value
) async throws(Failure) -> Value {
    do throws(AccountError) { return try await value() } catch { throw .account(error) }
}

func fromSessions<Value>(
    _ value: @autoclosure () async throws(SessionError) -> Value
) async throws(Failure) -> Value {
    do throws(SessionError) { return try await value() } catch { throw .session(error) }
}

func fromStore<Value>(_ value: @autoclosure () async throws(StoreError) -> Value) async throws(Failure) -> Value {
    do throws(StoreError) { return try await value() } catch { throw .store(error) }
}

func fromProvider<Value>(
    _ value: @autoclosure () async throws(AuthenticationError) -> Value
) async throws(Failure) -> Value {
    do throws(AuthenticationError) { return try await value() } catch { throw .authentication(error) }
}

/// A value that is published, such as the claims of an account.
func published<Value>(
    _ value: @autoclosure () async throws(ClaimPublisher.PublicationError) -> Value
) async throws(Failure) -> Value {
    do throws(ClaimPublisher.PublicationError) { return try await value() } catch { throw .publication(error) }
}

/// A value that is read from a request.
func read<Value>(_ value: @autoclosure () throws(AuthenticationError) -> Value) throws(Failure) -> Value {
    do throws(AuthenticationError) { return try value() } catch { throw .authentication(error) }
}

func fromBrowser<Value>(_ value: @autoclosure () throws(BrowserError) -> Value) throws(Failure) -> Value {
    do throws(BrowserError) { return try value() } catch { throw .browser(error) }
}

/// A value with random bytes.
func random<Value>(_ value: @autoclosure () throws(CryptoError) -> Value) throws(Failure) -> Value {
    do throws(CryptoError) { return try value() } catch { throw .authUnavailable(.signInNoEntropy) }
}
