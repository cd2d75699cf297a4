package import MartletCore
package import MartletProvider

/// Whether an authenticated caller may use a route.
package enum PolicyDecision: Sendable, Equatable {
    /// Allowed; the decision may be cached for this principal until before this instant.
    case allowed(until: UnixTime)
    case denied(PolicyDenial)
}

/// The authorization rules of a route: `authorize`.
package struct Policy: Sendable {
    /// A condition and its index in `authorize`, from 0.
    struct Rule: Sendable {
        let condition: Condition
        let index: Int

        /// The name in explanations: `authorize[1] email_verified`.
        var name: String { "authorize[\(index)] \(condition.subject)" }
    }

    let rules: [Rule]
    /// The maximum age of the credential, in seconds: `max_age` of `auth`.
    let maximumAge: Int64?
    /// `max_age` and `acr` of `authorize`.
    let authentication: AuthenticationRule?

    private static let maximumAgeName = "auth max_age"

    /// Whether it allows every caller.
    package var isEmpty: Bool { rules.isEmpty && maximumAge == nil && authentication == nil }

    /// What a sign-in has to prove for the route; `nil` without such a condition.
    package var stepUp: StepUpRequirement? { authentication?.requirement }

    /// Evaluates the rules: all conditions must hold, and the credential must be younger than `max_age` of `auth`.
    ///
    /// What another authentication can satisfy comes last: its challenge would be of no use to other callers.
    ///
    /// Without a principal only an empty policy allows; otherwise the decision is
    /// ``MartletCore/ErrorCode/policyNoPrincipal``, for which the client should get a challenge.
    package func evaluate(_ principal: Principal?, now: UnixTime) -> PolicyDecision {
        if isEmpty { return .allowed(until: UnixTime(seconds: .max)) }
        guard let principal else { return .denied(PolicyDenial(.policyNoPrincipal)) }
        for rule in rules {
            if let failure = rule.condition.failure(for: principal.identity.claims) {
                return .denied(PolicyDenial(failure, condition: rule.name))
            }
        }
        let end = end(for: principal) ?? UnixTime(seconds: .max)
        guard now < end else { return .denied(PolicyDenial(.policyTooOld, condition: Self.maximumAgeName)) }
        guard let authentication else { return .allowed(until: end) }
        switch authentication.evaluate(principal, now: now) {
        case .allowed(let until): return .allowed(until: min(end, until))
        case .denied(let denial): return .denied(denial)
        }
    }

    /// The instant at which the credential is too old.
    private func end(for principal: Principal) -> UnixTime? {
        maximumAge.map { principal.identity.issuedAt.advanced(bySeconds: $0) }
    }

    /// Evaluates like ``evaluate(_:now:)``, but continues after a failure and describes each condition with its claims.
    package func explain(_ principal: Principal?, now: UnixTime) -> [CheckOutcome] {
        guard let principal else {
            return isEmpty ? [] : [CheckOutcome(check: "policy", failure: .policyNoPrincipal, detail: "no principal")]
        }
        let claims = principal.identity.claims
        var checks = rules.map { rule in
            CheckOutcome(
                check: rule.name, failure: rule.condition.failure(for: claims),
                detail: "\(rule.condition): \(rule.condition.values(in: claims))")
        }
        if let maximumAge, let end = end(for: principal) {
            checks.append(
                CheckOutcome(
                    check: Self.maximumAgeName,
                    failure: now < end ? nil : .policyTooOld,
                    detail: "younger than \(maximumAge) s: issued at \(principal.identity.issuedAt), now \(now)"))
        }
        return checks + (authentication?.explain(principal, now: now) ?? [])
    }
}
