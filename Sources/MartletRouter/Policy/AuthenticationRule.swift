internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// The conditions of a route on how recently, and at which level, the user authenticated (RFC 9470).
struct AuthenticationRule: Sendable {
    /// The claim with the level of an authentication.
    private static let levelClaim = "acr"

    /// A condition with its index in `authorize`.
    private struct Entry<Value: Sendable>: Sendable {
        let value: Value
        let name: String
    }

    /// In seconds.
    private let maximumAge: Entry<Int64>?
    private let level: Entry<String>?

    /// - Returns: `nil` without conditions.
    init?(_ requirement: AuthenticationRequirement) {
        guard !requirement.isEmpty else { return nil }
        maximumAge = requirement.maximumAge.map {
            Entry(value: max($0.value.wholeSeconds, 1), name: "authorize[\($0.index)] max_age")
        }
        level = requirement.level.map { Entry(value: $0.value, name: "authorize[\($0.index)] acr") }
    }

    /// What a sign-in has to prove, so that the conditions hold after it.
    var requirement: StepUpRequirement { StepUpRequirement(maximumAge: maximumAge?.value, acr: level?.value) }

    /// The instant at which the authentication is too old. A time in the future counts as now.
    private func end(for principal: Principal, _ age: Int64, now: UnixTime) -> UnixTime {
        min(principal.identity.authTime, now).advanced(bySeconds: age)
    }

    /// Evaluates the conditions; a challenge names all that fail.
    func evaluate(_ principal: Principal, now: UnixTime) -> PolicyDecision {
        let end = maximumAge.map { self.end(for: principal, $0.value, now: now) } ?? UnixTime(seconds: .max)
        let isStrong = level.map { hasLevel($0.value, principal) } ?? true
        let isRecent = now < end
        guard !isStrong || !isRecent else { return .allowed(until: end) }
        let stepUp = StepUpRequirement(
            maximumAge: isRecent ? nil : maximumAge?.value, acr: isStrong ? nil : level?.value)
        return .denied(
            isStrong
                ? PolicyDenial(.policyAuthenticationTooOld, condition: maximumAge?.name ?? "", stepUp: stepUp)
                : PolicyDenial(.policyAuthenticationLevel, condition: level?.name ?? "", stepUp: stepUp))
    }

    private func hasLevel(_ level: String, _ principal: Principal) -> Bool {
        principal.identity.claims[Self.levelClaim]?.string?.hasSameBytes(as: level) == true
    }

    /// Describes each condition with what the principal has.
    func explain(_ principal: Principal, now: UnixTime) -> [CheckOutcome] {
        var checks: [CheckOutcome] = []
        if let maximumAge {
            checks.append(
                CheckOutcome(
                    check: maximumAge.name,
                    failure: now < end(for: principal, maximumAge.value, now: now) ? nil : .policyAuthenticationTooOld,
                    detail: "authenticated in the last \(maximumAge.value) s: "
                        + "authenticated at \(principal.identity.authTime), now \(now)"))
        }
        if let level {
            let value = Condition.shown(principal.identity.claims[Self.levelClaim])
            checks.append(
                CheckOutcome(
                    check: level.name, failure: hasLevel(level.value, principal) ? nil : .policyAuthenticationLevel,
                    detail: "authenticated with acr '\(level.value)': acr is \(value)"))
        }
        return checks
    }
}
