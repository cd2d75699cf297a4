package import MartletCore

/// A built provider with its capabilities, each of which is looked up once.
// lint:large-type one property for each capability of a provider
package final class ProviderHandle: Sendable {
    /// Its name in `providers:`.
    package let name: String
    package let kind: ProviderKind
    package let authenticating: (any Authenticating)?
    package let local: (any LocallyVerifying)?
    /// The same, if an event loop may call it directly.
    package let quick: (any LocallyVerifying)?
    package let throttling: (any Throttling)?
    /// What its decisions depend on, besides the credential; `nil` if it does not get the request.
    package let reuseKey: Set<RequestPart>?
    /// Whether it gets the request's whole head.
    package let readsHead: Bool
    /// Whether it is asked only about credentials that its sources name.
    package let isSelective: Bool
    package let explaining: (any Explaining)?
    package let running: (any Running)?
    package let reporting: (any Reporting)?
    /// `nil` if it accepts no logins.
    package let signingIn: (any SigningIn)?
    package let passwordChanging: (any PasswordChanging)?
    package let unlinking: (any Unlinking)?
    package let refreshing: (any Refreshing)?
    package let revoking: (any Revoking)?
    /// `nil` if it accepts no notifications.
    package let notifying: (any Notifying)?
    /// `nil` if no browser can sign in by redirect.
    package let redirecting: (any Redirecting)?
    package let selfServing: (any PasswordSelfServing)?
    package let userCreating: (any UserCreating)?
    package let userUnlocking: (any UserUnlocking)?
    package let keyIssuing: (any APIKeyIssuing)?
    package let transferring: (any Transferring)?
    package let onlineChecking: (any OnlineChecking)?
    /// Where its credentials are found; empty if it does not authenticate requests.
    package let accepts: [CredentialSource]
    /// What is counted of the credentials of requests that it verified, and of logins.
    package let verifications: CallRecorder
    package let logins: CallRecorder
    /// What its calls are kept apart by; `nil` if they run beside others.
    package let bulkhead: Bulkhead?

    /// - Parameter previous: the provider of that name before a reload, whose counters go on.
    package init<Plugin: Provider>(
        _ provider: Plugin, name: String, bulkhead: Bulkhead? = nil, replacing previous: ProviderHandle? = nil
    ) {
        self.name = name
        self.bulkhead = bulkhead
        kind = Plugin.kind
        let counted = previous.flatMap { $0.kind == Plugin.kind ? $0 : nil }
        verifications = counted?.verifications ?? CallRecorder()
        logins = counted?.logins ?? CallRecorder()
        authenticating = provider as? any Authenticating
        // On a thread of others, it could block them.
        local = bulkhead == nil ? provider as? any LocallyVerifying : nil
        quick = local.flatMap { $0.isQuick ? $0 : nil }
        throttling = bulkhead == nil ? provider as? any Throttling : nil
        reuseKey = (provider as? any RequestInspecting)?.reuseKey
        readsHead = (provider as? any RequestInspecting)?.readsHead ?? false
        isSelective = provider is any Selective
        explaining = provider as? any Explaining
        running = provider as? any Running
        reporting = provider as? any Reporting
        signingIn = (provider as? any SigningIn).flatMap { $0.acceptsSignIn ? $0 : nil }
        passwordChanging = provider as? any PasswordChanging
        unlinking = provider as? any Unlinking
        refreshing = provider as? any Refreshing
        revoking = provider as? any Revoking
        notifying = (provider as? any Notifying).flatMap { $0.acceptsNotifications ? $0 : nil }
        redirecting = (provider as? any Redirecting).flatMap { redirecting in
            BrowserKind.allCases.contains { redirecting.redirectFlow(in: $0) != nil } ? redirecting : nil
        }
        selfServing = provider as? any PasswordSelfServing
        userCreating = provider as? any UserCreating
        userUnlocking = provider as? any UserUnlocking
        keyIssuing = provider as? any APIKeyIssuing
        transferring = provider as? any Transferring
        onlineChecking = provider as? any OnlineChecking
        accepts = authenticating?.accepts ?? []
    }

    // MARK: Calls

    /// Runs a call of the provider, behind its bulkhead if it has one.
    /// - Throws: what it throws, or what ``Bulkhead/run(until:for:_:)`` does.
    package func run<Value: Sendable>(
        in context: AuthenticationContext,
        _ call: @escaping @Sendable () async throws(AuthenticationError) -> Value
    ) async throws(AuthenticationError) -> Value {
        guard let bulkhead else { return try await call() }
        return try await bulkhead.run(until: context.deadline, for: context.client?.workOwner ?? .anonymous, call)
    }

    /// The rejection of any login from a network now, counted as a login; `nil` if it has to be authenticated.
    package func rejection(ofLoginFrom client: ClientNetwork?) -> AuthenticationError? {
        // One behind a bulkhead might not return immediately.
        guard bulkhead == nil, let rejection = signingIn?.rejection(ofLoginFrom: client) else { return nil }
        logins.count(nil, failed: true)
        return rejection
    }

    /// Runs a login, counts it and how long it took.
    package func logIn<Value: Sendable>(
        in context: AuthenticationContext, clock: Clock = .system,
        _ call: @escaping @Sendable () async throws(AuthenticationError) -> Value
    ) async throws(AuthenticationError) -> Value {
        let start = clock.monotonicTime
        do throws(AuthenticationError) {
            let value = try await run(in: context, call)
            logins.count(clock.monotonicTime.since(start), failed: false)
            return value
        } catch {
            logins.count(clock.monotonicTime.since(start), failed: true)
            throw error
        }
    }

    /// An identity of the provider, as the gateway may reuse it.
    package func scoped(_ identity: Identity) -> Identity { readsHead ? identity.forOneRequest : identity }
}
