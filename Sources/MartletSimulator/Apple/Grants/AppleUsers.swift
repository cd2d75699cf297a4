private import MartletCore
private import MartletCrypto

/// A user of a team's apps, by Apple's books.
package struct AppleUser: Sendable {
    /// The relation between the user and the apps of the team.
    package enum State: String, Sendable, CaseIterable {
        /// Never authorized.
        case none
        case authorized
        /// Ended by the user or by the developer; a new login authorizes again.
        case revoked
        /// The Apple Account is gone for good.
        case deleted
    }

    /// The address that the apps of the team get.
    struct Email: Sendable {
        let address: String
        let isRelay: Bool
    }

    package fileprivate(set) var state = State.none
    /// Counts the endings: what was issued before the last one is invalid.
    fileprivate(set) var generation = 0
    package var forwardsEmail = true
    /// The address that was chosen at the first login on the web; `nil` before that.
    fileprivate var email: Email?
    /// Whether the last login had a relay address.
    fileprivate(set) var usesRelay = false
}

struct AppleUsers: Sendable {
    private var users: BoundedTable<AppleUser>

    init(capacity: Int) { users = BoundedTable(capacity: capacity) }

    subscript(subject: String) -> AppleUser { users[subject] ?? AppleUser() }

    /// Whether the user has not ended the authorization since a generation.
    func isValid(_ subject: String, generation: Int) -> Bool {
        let user = self[subject]
        return user.state == .authorized && user.generation == generation
    }

    /// A login authorizes the apps.
    /// - Parameter usesRelay: whether the apps get a relay address; `nil` if they get none.
    /// - Returns: the generation of what is issued now; `nil` if the account is deleted.
    mutating func authorize(_ subject: String, usesRelay: Bool?) -> Int? {
        var user = self[subject]
        guard user.state != .deleted else { return nil }
        user.state = .authorized
        if let usesRelay { user.usesRelay = usesRelay }
        users.insert(user, as: subject)
        return user.generation
    }

    /// What a login on the web gets: the choice of the first one that asks for a name or an address counts.
    /// - Parameters:
    ///   - email: the chosen address; `nil` for a relay address.
    ///   - asksForData: whether the login asks for them.
    /// - Returns: the address, and whether it is that first login; `nil` if the account is deleted.
    mutating func consent(
        _ subject: String, email: String?, asksForData: Bool
    ) -> (email: AppleUser.Email, isFirst: Bool)? {
        let user = self[subject]
        guard user.state != .deleted else { return nil }
        if let email = user.email { return (email, false) }
        let chosen = email.map { AppleUser.Email(address: $0, isRelay: false) } ?? Self.relay(of: subject)
        if asksForData { change(subject) { $0.email = chosen } }
        return (chosen, asksForData)
    }

    /// The same each time.
    private static func relay(of subject: String) -> AppleUser.Email {
        let name = Hexadecimal.text(SHA256.digest(Array("relay\n\(subject)".utf8)).prefix(5))
        return AppleUser.Email(address: "\(name)@privaterelay.appleid.com", isRelay: true)
    }

    /// Sets the state. Unless it is `authorized`, everything issued before becomes invalid.
    mutating func set(_ subject: String, to state: AppleUser.State) {
        change(subject) { user in
            user.state = state
            guard state != .authorized else { return }
            user.generation += 1
            // At the next consent, the user chooses again.
            user.email = nil
        }
    }

    mutating func change(_ subject: String, _ change: (inout AppleUser) -> Void) {
        var user = self[subject]
        change(&user)
        users.insert(user, as: subject)
    }
}
