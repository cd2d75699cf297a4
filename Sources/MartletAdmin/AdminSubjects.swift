package import MartletAccounts
internal import MartletCore
internal import MartletJSON
package import MartletProvider
internal import MartletResponder

/// What is known of a subject that has an account.
package struct SubjectReport: Sendable {
    /// An identity of the account.
    package struct Identity: Sendable {
        package let provider: String
        /// The provider's subject and its aliases.
        package let subjects: [String]
        package let times: LinkedIdentity?
        package let status: IdentityStatus?
        /// Whether the issuer has verified the address, if that is stored.
        package let isEmailVerified: Bool?
        /// `nil` for a provider that does not throttle users, and if it is not known.
        package let lock: Lock?

        package init(
            provider: String, subjects: [String], times: LinkedIdentity?, status: IdentityStatus?,
            isEmailVerified: Bool?, lock: Lock?
        ) {
            self.provider = provider
            self.subjects = subjects
            self.times = times
            self.status = status
            self.isEmailVerified = isEmailVerified
            self.lock = lock
        }
    }

    /// Whether attempts of a user are rejected.
    package enum Lock: Sendable {
        case open
        case throttled(UserThrottling)
    }

    package let account: AccountRecord
    package let identities: [Identity]
    /// The number of live sessions; `nil` if the store is unavailable.
    package let sessions: Int?

    package init(account: AccountRecord, identities: [Identity], sessions: Int?) {
        self.account = account
        self.identities = identities
        self.sessions = sessions
    }
}

/// Subjects that have accounts, as the admin listener shows, disables and deletes them.
package protocol SubjectAdministering: Sendable {
    /// What is known of a subject; `nil` for an unknown one.
    func report(on subject: String) async throws(AdminOutage) -> SubjectReport?
    /// Disables or enables the account of a subject; returns when this instance applies it and the others have been
    /// notified.
    /// - Returns: `false` for an unknown subject.
    func setDisabled(_ subject: String, _ isDisabled: Bool) async throws(AdminOutage) -> Bool
    /// Begins the deletion of an account; its sessions have ended when this returns.
    /// - Returns: `false` for an unknown subject.
    func delete(_ subject: String) async throws(AdminOutage) -> Bool
}

/// `/subjects/{subject}`: GET shows the account of a subject, DELETE deletes it; POST to `/disable` and `/enable` blocks
/// its credentials and lets them in again.
struct AdminSubjects {
    private let administration: (any SubjectAdministering)?

    /// - Parameter administration: `nil` without accounts.
    init(_ administration: (any SubjectAdministering)?) { self.administration = administration }

    /// Responds to a request with a method that the resource has.
    func respond(to request: LocalRequest, _ resource: AdminResource) async -> LocalResponse {
        let missing = AdminProblem.notFound.response(request.requestID)
        guard let administration else { return missing }
        do throws(AdminOutage) {
            switch resource {
            case .subject(let subject) where request.method == "DELETE":
                return try await administration.delete(subject) ? .adminDone : missing
            case .disable(let subject):
                guard try await administration.setDisabled(subject, true) else { return missing }
                return try await administration.report(on: subject).map(Self.response) ?? missing
            case .enable(let subject):
                guard try await administration.setDisabled(subject, false) else { return missing }
                return try await administration.report(on: subject).map(Self.response) ?? missing
            case .subject(let subject):
                return try await administration.report(on: subject).map(Self.response) ?? missing
            default: return missing
            }
        } catch {
            return error.response(request)
        }
    }

    private static func response(_ report: SubjectReport) -> LocalResponse { .admin(.object(report.document)) }
}

extension SubjectReport {
    /// All but secrets, and the claims that others have set, which have a resource of their own.
    fileprivate var document: JSONObject {
        let deletion = account.deletion
        let state =
            deletion.map { $0.deletedAt == nil ? "being_deleted" : "deleted" }
            ?? (account.disabledAt == nil ? "active" : "disabled")
        return [
            "subject": .string(account.subject), "state": .string(state),
            "created_at": .integer(account.createdAt.seconds),
            "disabled": .bool(account.disabledAt != nil),
            "disabled_at": account.disabledAt.map { .integer($0.seconds) } ?? .null,
            "deletion": deletion.map { deletion in
                [
                    "due_at": .integer(deletion.dueAt.seconds), "reason": .string(deletion.reason),
                    "deleted_at": deletion.deletedAt.map { .integer($0.seconds) } ?? .null,
                ]
            } ?? .null,
            "identities": .array(identities.map { .object($0.document) }),
            "claims": .string("/subjects/\(account.subject)/claims"),
            "stored_claims": .object(account.storedClaims), "profile": .object(account.profile),
            "sessions": sessions.map { .integer(Int64($0)) } ?? .null,
        ]
    }
}

extension SubjectReport.Identity {
    fileprivate var document: JSONObject {
        var document: JSONObject = [
            "provider": .string(provider), "subject": subjects.first.map { .string($0) } ?? .null,
            "aliases": .array(subjects.dropFirst().map { .string($0) }),
            "linked_at": times.map { .integer($0.linkedAt.seconds) } ?? .null,
            "last_login_at": times?.lastLoginAt.map { .integer($0.seconds) } ?? .null,
            "credential_state": .string(status?.state?.name ?? IdentityState.unknownName),
            "checked_at": status?.checkedAt.map { .integer($0.seconds) } ?? .null,
            "grant": .bool(status?.hasGrant ?? false),
        ]
        if let isEmailVerified { document["email_verified"] = .bool(isEmailVerified) }
        switch lock {
        case nil: break
        case .open?: document["lock"] = .null
        case .throttled(let throttling)?:
            document["lock"] = [
                "seconds": throttling.remaining.map { .integer($0.wholeSeconds) } ?? .null,
                "known_networks": .integer(Int64(throttling.knownNetworks)),
            ]
        }
        return document
    }
}
