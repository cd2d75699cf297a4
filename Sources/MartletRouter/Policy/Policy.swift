package import MartletCore
package import MartletProvider

/// Whether a known caller may use a route.
package enum PolicyVerdict: Sendable, Equatable {
    /// Yes; the verdict may be used again for this principal before this instant, not at or after it.
    case allowed(until: UnixTime)
    case denied(ErrorCode)
}

/// What a route demands of a caller beyond being known: `authorize`.
package struct Policy: Sendable {
    /// A condition and its index in `authorize`, from 0.
    struct Rule: Sendable {
        let condition: Condition
        let index: Int

        /// What explanations call it: `authorize[1] email_verified`.
        var name: String { "authorize[\(index)] \(condition.subject)" }
    }

    let rules: [Rule]
    /// Seconds since the proof was made.
    let maximumAge: Int64?
    /// Its index in `authorize`; `nil` where `auth` sets it.
    let maximumAgeIndex: Int?

    /// Whether it allows everybody, so that there is nothing to judge.
    package var isEmpty: Bool { rules.isEmpty && maximumAge == nil }

    /// Judges a caller: all conditions must hold, and the proof must be younger than `max_age`.
    ///
    /// Without a principal only a policy that demands nothing allows: conditions speak about somebody
    /// (``MartletCore/ErrorCode/policyNoPrincipal``; the answer to that is to ask for a credential).
    package func judge(_ principal: Principal?, now: UnixTime) -> PolicyVerdict {
        if isEmpty { return .allowed(until: UnixTime(seconds: .max)) }
        guard let principal else { return .denied(.policyNoPrincipal) }
        for rule in rules {
            if let failure = rule.condition.failure(for: principal.identity.claims) { return .denied(failure) }
        }
        guard let end = end(for: principal) else { return .allowed(until: UnixTime(seconds: .max)) }
        return now < end ? .allowed(until: end) : .denied(.policyTooOld)
    }

    /// The instant at which the proof is too old.
    private func end(for principal: Principal) -> UnixTime? {
        maximumAge.map { principal.identity.issuedAt.advanced(bySeconds: $0) }
    }

    /// Judges like ``judge(_:now:)`` but goes on after a failure, and names each condition with what it wants and what is there.
    package func explain(_ principal: Principal?, now: UnixTime) -> [CheckVerdict] {
        guard let principal else {
            return isEmpty ? [] : [CheckVerdict(check: "policy", failure: .policyNoPrincipal, detail: "no principal")]
        }
        let claims = principal.identity.claims
        var checks = rules.map { rule in
            CheckVerdict(
                check: rule.name, failure: rule.condition.failure(for: claims),
                detail: "\(rule.condition): \(rule.condition.seen(in: claims))")
        }
        if let maximumAge, let end = end(for: principal) {
            checks.append(
                CheckVerdict(
                    check: "\(maximumAgeIndex.map { "authorize[\($0)]" } ?? "auth") max_age",
                    failure: now < end ? nil : .policyTooOld,
                    detail: "younger than \(maximumAge) s: issued at \(principal.identity.issuedAt), now \(now)"))
        }
        return checks
    }
}
