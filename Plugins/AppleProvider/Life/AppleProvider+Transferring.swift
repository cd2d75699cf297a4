public import MartletConfig
public import MartletCore
private import MartletJSON
public import MartletProvider

extension AppleProvider: Transferring {
    private static let defaultRate = RequestRate(count: 5)

    public var team: String? { configuration.developer?.team }
    public var transferRate: RequestRate { configuration.check?.rate ?? Self.defaultRate }
    public var recognizesTransfers: Bool { configuration.migration != nil }

    /// The `transfer_sub` that tokens of the new team have for 60 days.
    public func transfer(of identity: Identity, at now: UnixTime) -> IdentityTransfer? {
        guard let migration = configuration.migration, let team, now < migration.end,
            let name = identity.claims[ClaimName.transferSubject.rawValue]?.string, !name.isEmpty
        else { return nil }
        return IdentityTransfer(transferSubject: name, fromTeam: migration.fromTeam, toTeam: team)
    }

    /// Fetches the access token of the calls.
    public func prepareTransfers(until deadline: MonotonicTime) async throws(AuthenticationError) {
        try await caller().prepare(until: deadline)
    }

    /// The `transfer_sub` of a user of this team (Apple, "Transferring your apps and users to another team").
    public func exportUser(
        _ subject: String, to team: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String {
        try await caller().ask([("sub", subject), ("target", team)], for: "transfer_sub", until: deadline)
    }

    /// The `sub` at this team (Apple, "Bringing new apps and users into your team").
    public func importUser(
        _ transferSubject: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String {
        try await caller().ask([("transfer_sub", transferSubject)], for: "sub", until: deadline)
    }

    private func caller() throws(AuthenticationError) -> MigrationCaller {
        guard let migration else { throw .denied(AppleError.apiUnreachable("").code) }
        return migration
    }
}
