internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder

/// The members of registrations and of requests for a new password.
extension SignInForm {
    /// The address in a required member.
    /// - Throws: 400 for a text that is not an address.
    func requiredAddress(_ member: String = "email") throws(AuthenticationError) -> EmailAddress {
        guard let address = EmailAddress(try requiredText(member)) else { throw badAddress(member) }
        return address
    }

    /// The error of a member that is not an address.
    func badAddress(_ member: String) -> AuthenticationError {
        .malformed(.signInBadAddress, BodyError(member, .invalid, detail: "`\(member)` is not an email address."))
    }

    /// The sanitized display name in the member `name`; `nil` if it is absent or empty.
    /// - Throws: 400 for a name that is too long, or that has no visible character.
    func displayName() throws(AuthenticationError) -> String? {
        guard let text = try text("name"), !text.isEmpty else { return nil }
        guard text.unicodeScalars.count <= DisplayName.maximumLength else {
            let detail = "`name` must have at most \(DisplayName.maximumLength) characters."
            throw .malformed(.signInBadName, BodyError("name", .tooLong, detail: detail))
        }
        guard let name = DisplayName.clean([text]) else {
            throw .malformed(.signInBadName, BodyError("name", .invalid, detail: "`name` has no visible character."))
        }
        return name
    }

    /// The same, but control characters, and marks that change the direction of the text, are not removed.
    /// - Throws: also 400 for a name with one of them.
    func plainDisplayName() throws(AuthenticationError) -> String? {
        let name = try displayName()
        guard try !DisplayName.hasHiddenCharacters(text("name") ?? "") else {
            throw .malformed(
                .signInBadName, BodyError("name", .invalid, detail: "`name` must not have control characters."))
        }
        return name
    }

    /// The language tag in the member `locale`; `nil` if it is absent or empty.
    /// - Throws: 400 for a text that is not a tag.
    func locale() throws(AuthenticationError) -> LanguageTag? {
        guard let text = try text("locale"), !text.isEmpty else { return nil }
        guard let tag = LanguageTag(text) else {
            throw .malformed(
                .signInBadLocale,
                BodyError("locale", .invalid, detail: "`locale` is not a language tag such as en or zh-Hans."))
        }
        return tag
    }
}
