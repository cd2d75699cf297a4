public import MartletConfig
public import MartletCore

/// A user of an app that has moved from one team of developers to another, as a credential of the new team names it.
public struct IdentityTransfer: Sendable, Hashable {
    /// The identifier of the user that both teams know.
    public let transferSubject: String
    /// The id of the team that the app belonged to.
    public let fromTeam: String
    /// The id of the team that the app belongs to now.
    public let toTeam: String

    public init(transferSubject: String, fromTeam: String, toTeam: String) {
        self.transferSubject = transferSubject
        self.fromTeam = fromTeam
        self.toTeam = toTeam
    }
}

/// A provider whose issuer gives users another subject when the app moves to another team of developers.
///
/// The old team exports each user and gets a transfer subject; the new team imports that and gets its own subject.
public protocol Transferring: Provider {
    /// The id of the team that calls the issuer; `nil` if calls are not configured.
    var team: String? { get }
    /// The maximum rate of calls.
    var transferRate: RequestRate { get }
    /// Whether credentials can name a transfer at all; ``transfer(of:at:)`` is not called otherwise.
    var recognizesTransfers: Bool { get }

    /// The transfer that a verified identity names; `nil` without one, and outside its configured time.
    func transfer(of identity: Identity, at now: UnixTime) -> IdentityTransfer?

    /// Prepares calls, as far as the issuer can say before the first of them whether they are allowed.
    /// - Throws: like ``exportUser(_:to:until:)``.
    func prepareTransfers(until deadline: MonotonicTime) async throws(AuthenticationError)

    /// The transfer subject of a user of this team.
    /// - Throws: `rejected` for this user only, `denied` if the issuer refuses all calls, `throttled` if it asks for a
    ///   pause, `unavailable` if its response proves nothing.
    func exportUser(
        _ subject: String, to team: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String

    /// The subject at this team of a user with a transfer subject.
    /// - Throws: like ``exportUser(_:to:until:)``.
    func importUser(
        _ transferSubject: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String
}
