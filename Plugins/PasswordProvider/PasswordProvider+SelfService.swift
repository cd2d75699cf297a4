public import MartletCore
internal import MartletCrypto
public import MartletProvider

extension PasswordProvider: PasswordSelfServing {
    /// Checks and hashes a new password on the hashing pool, within the quota of the client's network.
    public func hashNewPassword(
        _ password: Secret, member: String, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> String {
        let (client, deadline) = (context.client, context.deadline)
        let password = try await newPassword(password, member: member, for: client, until: deadline)
        return try await hash(password, for: client, until: deadline).encoded
    }

    /// Whether the network is one that throttling knows.
    public func hasLoggedIn(_ key: String, from network: ClientNetwork) async -> Bool {
        await throttle.knows(network, Array(key.utf8))
    }

    /// Ends the bans of the user.
    public func passwordWasReset(of key: String, in context: AuthenticationContext) async {
        singleFlight.startNewEpoch()
        do throws(StoreError) { try await throttle.unlock(Array(key.utf8)) } catch {
            self.context.logger.warning("unlocking a user failed", ("code", error.code.rawValue))
        }
    }
}
