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
    let conditions: [Condition]
    /// Seconds since the proof was made.
    let maximumAge: Int64?

    /// Whether it allows everybody, so that there is nothing to judge.
    package var isEmpty: Bool { conditions.isEmpty && maximumAge == nil }

    /// Judges a caller: all conditions must hold, and the proof must be younger than `max_age`.
    ///
    /// Without a principal only a policy that demands nothing allows: conditions speak about somebody
    /// (``MartletCore/ErrorCode/policyNoPrincipal``; the answer to that is to ask for a credential).
    package func judge(_ principal: Principal?, now: UnixTime) -> PolicyVerdict {
        if isEmpty { return .allowed(until: UnixTime(seconds: .max)) }
        guard let principal else { return .denied(.policyNoPrincipal) }
        for condition in conditions {
            if let failure = condition.failure(for: principal.identity.claims) { return .denied(failure) }
        }
        guard let end = end(for: principal) else { return .allowed(until: UnixTime(seconds: .max)) }
        return now < end ? .allowed(until: end) : .denied(.policyTooOld)
    }

    /// The instant at which the proof is too old.
    private func end(for principal: Principal) -> UnixTime? {
        maximumAge.map { principal.identity.issuedAt.advanced(bySeconds: $0) }
    }

    /// Judges like ``judge(_:now:)`` but goes on after a failure and says what was asked and seen; for `martlet explain`.
    package func explain(_ principal: Principal?, now: UnixTime) -> [CheckVerdict] {
        guard let principal else {
            return isEmpty ? [] : [CheckVerdict(check: "policy", failure: .policyNoPrincipal, detail: "no principal")]
        }
        let claims = principal.identity.claims
        var checks = conditions.map { condition in
            CheckVerdict(
                check: condition.description, failure: condition.failure(for: claims),
                detail: condition.seen(in: claims))
        }
        if let maximumAge, let end = end(for: principal) {
            checks.append(
                CheckVerdict(
                    check: "the proof is younger than \(maximumAge) s", failure: now < end ? nil : .policyTooOld,
                    detail: "issued at \(principal.identity.issuedAt), now \(now)"))
        }
        return checks
    }
}
