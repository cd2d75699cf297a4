/// A built provider and what it can do; capabilities are looked up once, here.
package final class ProviderHandle: Sendable {
    /// Its name in `providers:`.
    package let name: String
    package let kind: ProviderKind
    package let authenticating: (any Authenticating)?
    package let local: (any LocallyVerifying)?
    /// The same, where an event loop may ask it.
    package let quick: (any LocallyVerifying)?
    package let explaining: (any Explaining)?
    package let running: (any Running)?
    package let reporting: (any Reporting)?
    package let onlineChecking: (any OnlineChecking)?
    package let signingIn: (any SigningIn)?
    package let passwordChanging: (any PasswordChanging)?
    package let unlinking: (any Unlinking)?
    package let userMaking: (any UserMaking)?
    /// Where its credentials are found; empty if it judges none.
    package let accepts: [CredentialSource]

    package init<Plugin: Provider>(_ provider: Plugin, name: String) {
        self.name = name
        kind = Plugin.kind
        authenticating = provider as? any Authenticating
        local = provider as? any LocallyVerifying
        quick = local.flatMap { $0.isQuick ? $0 : nil }
        explaining = provider as? any Explaining
        running = provider as? any Running
        reporting = provider as? any Reporting
        onlineChecking = provider as? any OnlineChecking
        signingIn = provider as? any SigningIn
        passwordChanging = provider as? any PasswordChanging
        unlinking = provider as? any Unlinking
        userMaking = provider as? any UserMaking
        accepts = authenticating?.accepts ?? []
    }
}
