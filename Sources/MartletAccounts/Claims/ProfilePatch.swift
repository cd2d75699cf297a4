package import MartletCore
package import MartletJSON

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
