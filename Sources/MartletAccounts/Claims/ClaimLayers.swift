internal import MartletJSON

/// The claims of an account by who has set them.
struct ClaimLayers: Sendable, Equatable {
    /// How many removed claims an operator's layer records; older ones may be set by rules again.
    private static let maximumRemovals = 32

    /// What operators have set; null for a claim that they have removed, which rules do not set again.
    private(set) var operators: JSONObject = [:]
    /// What rules of the configuration have set.
    private(set) var rules: JSONObject = [:]
    /// What the user says of themselves.
    private(set) var profile: JSONObject = [:]

    /// The claims of the account: an operator's win over those of rules, and both over the user's own.
    var merged: JSONObject { profile.patched(by: vouched) }

    /// What the user has no influence on. Only this is bounded as a whole: a profile is small, and must not be what
    /// prevents an operator from setting a claim.
    private var vouched: JSONObject { rules.patched(by: operators) }

    /// Applies a user's change.
    mutating func change(by patch: ProfilePatch) { profile = profile.patched(by: patch.changes) }

    /// Applies an operator's change. A removal takes the user's own value along, who may set another.
    /// - Throws: `claims.too_large`.
    mutating func change(by patch: ClaimPatch) throws(AccountError) {
        for member in patch.changes.members {
            // Appended, so that the removals that go first are the oldest.
            if member.value == .null {
                operators[member.name] = .none
                profile[member.name] = .none
            }
            operators[member.name] = .some(member.value)
        }
        var surplus = operators.members.count { $0.value == .null } - Self.maximumRemovals
        for member in operators.members where member.value == .null && surplus > 0 {
            operators[member.name] = .none
            surplus -= 1
        }
        try ClaimRules.check(vouched)
    }

    /// Applies what rules say about a login; what they do not mention stays.
    ///
    /// A claim for which there is no room is left out: a login must not fail because of it.
    mutating func apply(rules claims: JSONObject) {
        for member in claims.members {
            var longer = self
            longer.rules[member.name] = member.value
            if (try? ClaimRules.check(longer.vouched)) != nil, (try? ClaimRules.check(longer.rules)) != nil {
                self = longer
            }
        }
    }

    /// The rows of the index.
    var indexEntries: [(name: String, value: String)] {
        merged.members.flatMap { member in
            ClaimRules.indexTexts(of: member.value).map { (name: member.name, value: $0) }
        }
    }
}
