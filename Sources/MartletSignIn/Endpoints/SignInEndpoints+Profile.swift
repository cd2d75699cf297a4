internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The endpoint where users change what they say of themselves.
extension SignInEndpoints {
    /// `PATCH /profile`: 200 when this instance applies the change and the others have been notified.
    ///
    /// Every change reaches all instances, so a network's number of changes is limited.
    func changeProfile(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts else { throw .noRoute(.signInNoAccounts) }
        let subject = try await caller(of: request).session.subject
        let patch = try SignInBody.form(of: request).profilePatch()
        return try await withBudget(budgets.profiles, request, countsSuccess: true) { () async throws(Failure) in
            let profile = try await fromAccounts(await accounts.changeProfile(of: subject, by: patch))
            // Also if nothing has changed: the client repeats a change whose publication failed.
            try await published(await setup.claims?.publish(subject))
            setup.logger.info("profile changed", ("subject", subject), ("request_id", request.requestID))
            return SignInResponse.json(profile)
        }
    }
}

extension SignInForm {
    /// Its members, all of which a profile has.
    private static let profileMembers: Set<String> = ["name", "locale"]

    /// The change that a body describes; `null` removes a member, and so does an empty text, because a form has no
    /// `null`.
    /// - Throws: 400 for members that users cannot change, and for values that are not valid.
    fileprivate func profilePatch() throws(Failure) -> ProfilePatch {
        var others = names.filter { !Self.profileMembers.contains($0) }.sorted().map { Self.unknown($0) }
        if hasOtherNames { others.append(Self.unknown("")) }
        guard others.isEmpty else { throw .malformed(.signInUnknownMember, others) }
        var patch = ProfilePatch()
        if names.contains("name") { patch.set(name: try read(plainDisplayName())) }
        if names.contains("locale") { patch.set(locale: try read(locale())) }
        return patch
    }

    private static func unknown(_ name: String) -> BodyError {
        let path = BodyMembers.pathOfClaim(name)
        let hint = profileMembers.sorted().first { NearMiss.find($0, among: [name]) != nil }
        let detail = "Only `name` and `locale` can be changed"
        guard let hint else { return BodyError(path, .invalid, detail: "\(detail).") }
        // Similar, and therefore of plain characters.
        return BodyError(path, .invalid, detail: "\(detail) (`\(name)`: did you mean `\(hint)`?).")
    }
}
