internal import MartletCore
internal import MartletJSON
internal import MartletResponder

/// `POST /auth/usermigrationinfo` of the simulated Apple: moves the users of an app to another team.
struct AppleMigrationEndpoint {
    private static let scheme = "Bearer "

    let simulator: AppleSimulator
    let authorization: String?

    /// The old team sends `sub` and `target`, and gets `transfer_sub`; the new team sends that, and gets its `sub`.
    func move(_ form: AppleForm) throws(AppleAPIError) -> LocalResponse {
        try form.allow(["client_id", "client_secret", "sub", "target", "transfer_sub"])
        let client = try AppleTokenEndpoint(simulator: simulator).client(form)
        try checkAccess(of: client)
        switch (form["sub"], form["target"], form["transfer_sub"]) {
        case (let subject?, let target?, nil):
            let user = try export(subject, from: client, to: target)
            return .json(200, JSON.write(JSONObject([("transfer_sub", .string(user.transferSubject))])))
        case (nil, nil, let transferSubject?):
            return .json(200, JSON.write(Self.members(try importedUser(transferSubject, by: client))))
        default:
            throw .invalidRequest("Either sub and target, or transfer_sub is required.")
        }
    }

    private func checkAccess(of client: AppleRecords.Client) throws(AppleAPIError) {
        guard let authorization, authorization.lowercased().hasPrefix(Self.scheme.lowercased()) else {
            throw .invalidRequest("There is no access token.")
        }
        let name = String(authorization.dropFirst(Self.scheme.count))
        guard simulator.records.isMigrationToken(name, of: client) else {
            throw .invalidGrant("The access token is invalid or has expired.")
        }
    }

    /// The user of the client's team, which is the old one.
    private func export(
        _ subject: String, from client: AppleRecords.Client, to target: String
    ) throws(AppleAPIError) -> TransferredUser {
        let user = simulator.records.withBooks { $0.users[subject] }
        guard user.state != .none, user.state != .deleted else { throw .invalidRequest("The sub is unknown.") }
        let now = simulator.clock.unixTime
        let transferred = simulator.transfers.withLock {
            $0.export(subject, from: client.teamID, to: target, usesRelay: user.usesRelay, at: now)
        }
        guard let transferred else { throw .invalidRequest("No transfer to the target is open.") }
        return transferred
    }

    /// The user at the client's team, which is the new one.
    private func importedUser(
        _ transferSubject: String, by client: AppleRecords.Client
    ) throws(AppleAPIError) -> TransferredUser {
        let now = simulator.clock.unixTime
        let user = simulator.transfers.withLock {
            $0.user(transferSubject: transferSubject, to: client.teamID, at: now)
        }
        guard let user else { throw .invalidRequest("The transfer_sub is unknown.") }
        return user
    }

    private static func members(_ user: TransferredUser) -> JSONObject {
        var object: JSONObject = ["sub": .string(user.newSubject)]
        if let address = user.relayAddress {
            object["email"] = .string(address)
            object["is_private_email"] = true
        }
        return object
    }
}
