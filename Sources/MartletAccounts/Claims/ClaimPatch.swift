package import MartletCore
package import MartletJSON

/// A valid change of claims, as a JSON merge patch (RFC 7396): null removes a claim.
package struct ClaimPatch: Sendable, Equatable {
    package let changes: JSONObject

    /// - Throws: `claims.name_invalid`, `claims.name_reserved`, `claims.value_invalid`.
    package init(_ changes: JSONObject) throws(AccountError) {
        if let first = ClaimRules.errors(in: changes).first { throw first.error }
        self.changes = changes
    }

    package var names: [String] { changes.members.map(\.name) }

    /// The claims after the change.
    func applied(to claims: JSONObject) -> JSONObject { claims.patched(by: changes) }
}

extension JSONObject {
    /// The object with a merge patch applied; nested objects are replaced.
    func patched(by patch: JSONObject) -> JSONObject {
        var patched = self
        for member in patch.members {
            let new: JSONValue? = member.value == .null ? .none : .some(member.value)
            patched[member.name] = new
        }
        return patched
    }
}

/// A valid change of what a user says of themselves, as a JSON merge patch (RFC 7396): null removes a claim.
package struct ProfilePatch: Sendable, Equatable {
    package private(set) var changes: JSONObject = [:]

    /// A patch that changes nothing.
    package init() {}

    /// - Parameter name: what ``DisplayName`` has cleaned; `nil` removes it.
    package mutating func set(name: String?) { changes["name"] = .some(name.map { .string($0) } ?? .null) }

    /// - Parameter locale: `nil` removes it.
    package mutating func set(locale: LanguageTag?) {
        changes["locale"] = .some(locale.map { .string($0.text) } ?? .null)
    }
}
