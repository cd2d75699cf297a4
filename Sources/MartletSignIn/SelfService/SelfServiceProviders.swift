internal import MartletCore
internal import MartletProvider

/// The providers whose users may register or replace a forgotten password.
struct SelfServiceProviders: Sendable {
    /// One of them, with its name in `providers:`.
    struct Entry: Sendable {
        let name: String
        let provider: any PasswordSelfServing
    }

    /// All providers whose users are in the account store.
    let all: [Entry]

    init(_ handles: [ProviderHandle]) {
        all = handles.compactMap { handle in
            guard let provider = handle.selfServing, provider.storesRecords else { return nil }
            return Entry(name: handle.name, provider: provider)
        }
    }

    /// Those whose users can register.
    var registering: [Entry] { all.filter { $0.provider.selfService.registration != nil } }
    /// Those whose users can replace a forgotten password.
    var resetting: [Entry] { all.filter { $0.provider.selfService.reset != nil } }

    /// The names of all of them: each has the users of the account store.
    var names: [String] { all.map(\.name) }
    /// Whether users have addresses for names that a mail proves.
    var provesAddresses: Bool { all.contains { $0.provider.selfService.usesAddresses } }

    /// The provider that a body names with `provider`; it may be omitted if there is only one.
    /// - Throws: 400 if it is missing, or names none of them.
    static func chosen(from entries: [Entry], by form: SignInForm) throws(AuthenticationError) -> Entry {
        guard let name = try form.text("provider") else {
            guard entries.count == 1, let only = entries.first else { throw form.missing("provider") }
            return only
        }
        guard let entry = entries.first(where: { $0.name.hasSameBytes(as: name) }) else {
            throw .malformed(
                .signInUnknownProvider,
                BodyError("provider", .invalid, detail: "`provider` does not name a provider that allows this."))
        }
        return entry
    }
}
