private import MartletCore
public import MartletProvider

extension AppleProvider: Notifying {
    public var acceptsNotifications: Bool { configuration.notificationsLocation != nil }

    /// Verifies a notification like a token: it must be signed by Apple for one of the configured clients.
    public func readNotification(
        _ form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProviderNotification {
        let payload = try form.requiredSecret("payload").withBytes { $0.map(\.self) }
        let claims = try await Self.result(await verifyNotification(payload, at: context.now))
        return try await Self.result(
            try AppleNotification(claims, token: payload, at: self.context.clock.unixMilliseconds).notification)
    }
}
