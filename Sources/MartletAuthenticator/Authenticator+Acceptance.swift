internal import MartletCore
internal import MartletProvider
internal import MartletResponder
internal import MartletRouter

/// What routes accept.
extension Authenticator {
    /// Whether the route accepts credentials of that form now.
    @inline(__always)
    func accepts(_ form: CredentialForm, on route: Int) -> Bool {
        switch form {
        case .session, .cookie: rules.routes[route].acceptsSessions && !rejectsSessions
        case .basic: rules.routes[route].acceptsBasic
        case .direct, .header, .certificate: rules.routes[route].acceptsDirect
        }
    }

    /// Why the route does not accept credentials of a form.
    func rejection(of form: CredentialForm, on route: Int) -> Failure {
        switch form {
        case .session, .cookie:
            rules.routes[route].acceptsSessions
                ? .authUnavailable("auth.store_down") : .credentialInvalid("auth.sessions_not_accepted")
        case .basic: .credentialInvalid("auth.scheme_not_accepted")
        case .direct, .header, .certificate: .credentialInvalid("auth.direct_not_accepted")
        }
    }

    /// Whether the route accepts tokens of that kind.
    func acceptsToken(isSession: Bool, on route: Int) -> Bool {
        isSession ? rules.routes[route].acceptsSessions : rules.routes[route].acceptsDirect
    }

    /// Whether the route's policy allows a request without a credential.
    func acceptsAnonymous(_ route: Int, at time: LoopTime) -> Bool {
        if case .denied = rules.table.routes[route].policy.evaluate(nil, now: time.unixTime) { return false }
        return true
    }

    /// The providers that may verify a credential on a route.
    private func providers(on route: Int) -> [Int32] { rules.plans[Int(rules.routes[route].plan)].providers }

    /// Index of the provider that verified a principal, if the route accepts it.
    func provider(of principal: Principal, _ route: Int) -> Int32? {
        providers(on: route).first { rules.providers[Int($0)].name.hasSameBytes(as: principal.provider) }
    }

    /// Whether the route accepts a provider, by its index.
    func accepts(provider: Int32, on route: Int) -> Bool { provider >= 0 && providers(on: route).contains(provider) }

    /// What verifies a credential on a route; `nil` when no provider claims it.
    package func verificationTarget(_ form: CredentialForm, _ value: [UInt8], _ route: Int) -> Verifier.Target? {
        let providers = providers(on: route)
        let chosen: Int32?
        switch form {
        case .session, .cookie: return rules.sessions.map { .sessions($0) }
        case .direct:
            chosen = ProviderChoice.pick(
                value, among: providers, of: rules.providers, maximumTokenBytes: rules.maximumTokenBytes)
        case .basic: chosen = providers.first { rules.providers[Int($0)].accepts.contains(.basic) }
        case .header(let source): chosen = rules.headerSources[Int(source)].provider(among: providers)
        case .certificate:
            chosen = providers.first { rules.providers[Int($0)].accepts.contains(.clientCertificate) }
        }
        return chosen.map { .provider(rules.providers[Int($0)]) }
    }

    /// The rejection of a caller who does not meet the route's conditions.
    @inline(never)
    func denied(_ denial: Int32, _ names: UnsafeBufferPointer<UInt8>) -> AuthorizationOutcome {
        unsafe .rejected(Rejection(Failure(denials[denial]), .policy, names: names))
    }

    /// The rejection of a credential that is not verified, with whose it is as far as that is known.
    @inline(never)
    mutating func failed(
        _ error: AuthenticationError, _ location: CredentialLocation, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        identityBlock.removeAll()
        if let caller = error.caller {
            identityBlock.writeNames(of: caller, rules)
            if let name = caller.provider,
                let index = rules.providers.firstIndex(where: { $0.name.hasSameBytes(as: name) })
            {
                credential.provider = Int32(clamping: index)
            }
        }
        return unsafe .rejected(
            Rejection(.authentication(error), .verification(error, location), names: identityBlock.bytes))
    }

    // MARK: Principals

    /// A session's principal does not depend on the route; a provider's result depends on which provider was chosen.
    func principalScope(_ form: CredentialForm, _ route: Int) -> UInt32 {
        form.scope(form == .session || form == .cookie ? 0 : UInt32(rules.routes[route].plan))
    }

    /// Caches the principal of a credential, for other routes and for when this route has to decide again.
    ///
    /// - Parameter isDecisionCached: the route's decision is cached for as long as the credential is valid. Where no
    ///   other route uses the same providers, the principal would never be looked up.
    mutating func cachePrincipal(
        _ verified: VerifiedPrincipal, _ presented: PresentedCredential, route: Int, isDecisionCached: Bool,
        at time: LoopTime
    ) {
        let form = presented.form
        let isUseful = form != .direct || !isDecisionCached || rules.isShared[Int(rules.routes[route].plan)]
        guard isUseful, !presented.isSingleUse, verified.expires > time.unix else { return }
        unsafe principals.insert(
            presented.key, scope: principalScope(form, route), expires: verified.expires, now: time.unix,
            attachment: unsafe UnsafeBufferPointer(start: nil, count: 0), payload: verified,
            weight: verified.principal.weight)
    }
}
