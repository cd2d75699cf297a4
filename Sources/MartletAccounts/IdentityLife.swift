package import MartletCore
package import MartletJSON

/// What is known of an identity at its issuer.
package enum IdentityState: Int64, Sendable, CaseIterable {
    /// The last login, or the last check, succeeded.
    case authorized = 1
    /// The user has withdrawn the consent.
    case revoked = 2
    /// The user's account at the issuer is gone.
    case deleted = 3
    /// The identity was exported to another team of developers, whose subject of it is not known yet.
    case transferred = 4

    /// The state in responses and claims.
    package var name: String { "\(self)" }
    /// The name of the claim that says the state.
    package static let claim = "credential_state"
    /// The state of an identity that nothing is known of.
    package static let unknownName = "unknown"
}

/// What a login has changed that its issuer confirms.
package enum LoginConfirmation: Sendable {
    /// Nothing that others see.
    case unchanged
    /// The identity's state, and with it the claims of the account.
    case stateChanged
}

/// The state of one identity of an account.
package struct IdentityStatus: Sendable, Equatable {
    package let provider: String
    /// `nil` if nothing is known.
    package let state: IdentityState?
    /// When the state became known.
    package let checkedAt: UnixTime?
    /// Whether a grant of its issuer is stored, such as a refresh token.
    package let hasGrant: Bool

    package init(provider: String, state: IdentityState?, checkedAt: UnixTime?, hasGrant: Bool) {
        (self.provider, self.state) = (provider, state)
        (self.checkedAt, self.hasGrant) = (checkedAt, hasGrant)
    }
}

/// A grant encrypted for the store.
package struct SealedGrant: Sendable, Equatable {
    /// The client id that it was granted to.
    package let client: String
    /// The id of the key that it is encrypted with.
    package let keyID: String
    /// The encrypted grant as text.
    package let token: String

    package init(client: String, keyID: String, token: String) {
        self.client = client
        self.keyID = keyID
        self.token = token
    }
}

/// A login whose identity is confirmed by its issuer.
package struct ConfirmedLogin: Sendable {
    package let identity: AccountIdentity
    /// When the credential was issued.
    package let issuedAt: UnixTime
    /// When the issuer confirmed the identity: when it issued the credential, or when it granted something for it.
    package let confirmedAt: UnixTime
    package let now: UnixTime
    /// Replaces the grant of the same client.
    package let grant: SealedGrant?
    /// When the grant is checked first, in milliseconds since 1970; `nil` if it is not.
    package let nextCheck: Int64?
    /// How the deletion of a former account of the identity is announced, whose revocation the login supersedes.
    package let deletion: DeletionPolicy

    package init(
        identity: AccountIdentity, issuedAt: UnixTime, confirmedAt: UnixTime, now: UnixTime, grant: SealedGrant?,
        nextCheck: Int64?, deletion: DeletionPolicy = DeletionPolicy()
    ) {
        self.deletion = deletion
        self.identity = identity
        self.issuedAt = issuedAt
        self.confirmedAt = confirmedAt
        self.now = now
        self.grant = grant
        self.nextCheck = nextCheck
    }
}

/// The outcome of a notification.
package struct FiledNotification: Sendable {
    /// What was done about it.
    package enum Outcome: String, Sendable {
        case applied
        /// A notification of the same id was filed before.
        case repeated
        /// Something newer is known of the identity.
        case outdated
        /// There is no such identity.
        case unknownIdentity = "unknown_identity"
        /// Its type means nothing to the gateway.
        case ignored
    }

    package let outcome: Outcome
    /// The account; `nil` if there is none.
    package let subject: String?
    /// What is left to do.
    package let jobs: [AccountJob]
}

/// Work that a change of an account leaves, recorded in the change's transaction and repeated until it is done.
package struct AccountJob: Sendable, Equatable {
    /// What is to be done. Each is idempotent.
    package enum Kind: String, Sendable, CaseIterable {
        /// Ends sessions of the account; `data.reason` says why.
        case endSessions = "end_sessions"
        /// Revokes the grant in `data` at its issuer.
        case revoke
        case deleteAccount = "delete_account"
        /// Makes every gateway apply the account's claims, and whether it is disabled.
        case publishClaims = "publish_claims"
    }

    package let number: Int64
    package let kind: Kind
    /// The account's subject.
    package let account: String
    /// The provider's name; empty for all.
    package let provider: String
    package let data: JSONObject
    /// The number of failed attempts.
    package let attempts: Int
    /// Milliseconds since 1970.
    package let createdAt: Int64
}

/// An identity whose grant is due for a check.
package struct DueCheck: Sendable, Equatable {
    /// The id of the identity in the store.
    package let identity: String
    package let account: String
    /// The provider's subject.
    package let subject: String
    /// When it became due, in milliseconds since 1970.
    package let dueAt: Int64
    package let grant: SealedGrant
}

/// The revocations that have not succeeded.
package struct PendingRevocations: Sendable, Equatable {
    package var count = 0
    /// When the oldest was requested, in milliseconds since 1970.
    package var oldest: Int64?

    package init() {}
}

/// The provider that a notification came to.
package struct NotificationSource: Sendable, Equatable {
    /// Its name in `providers:`.
    package let provider: String
    /// Its kind, the prefix of reasons.
    package let kind: String

    package init(provider: String, kind: String) {
        self.provider = provider
        self.kind = kind
    }

    /// The reason of ended sessions: `apple_consent_revoked`.
    package func reason(_ what: String) -> String { "\(kind)_\(what)" }
}

/// A session that ended, for events.
package struct EndedSession: Sendable, Equatable {
    package let id: String
    package let provider: String

    package init(id: String, provider: String) {
        self.id = id
        self.provider = provider
    }
}

/// Which sessions of an account end, and why.
package struct SessionsEnd: Sendable {
    /// The sessions of this provider; `nil` for all.
    package var provider: String?
    /// Only this session.
    package var only: String?
    /// A session that goes on.
    package var except: String?
    package let reason: String

    package init(_ reason: String, provider: String? = nil, only: String? = nil, except: String? = nil) {
        self.reason = reason
        self.provider = provider
        self.only = only
        self.except = except
    }

    /// The end that a job's data describe.
    package init(_ job: AccountJob) {
        self.init(
            job.data["reason"]?.string ?? "", provider: job.provider.isEmpty ? nil : job.provider,
            only: job.data["session_id"]?.string, except: job.data["except"]?.string)
    }

    /// Whether logins in progress and cached results end, too: not when a user logs out.
    package var endsLogins: Bool { only == nil && except == nil && reason != SessionsEnd.logoutAll }

    /// The reason of `POST /logout?all=true`.
    package static let logoutAll = "logout_all"

    var data: JSONObject {
        var data: JSONObject = ["reason": .string(reason)]
        if let only { data["session_id"] = .string(only) }
        if let except { data["except"] = .string(except) }
        return data
    }
}

/// How accounts are deleted.
package struct DeletionPolicy: Sendable, Equatable {
    /// How long a login takes a deletion back.
    package var grace = Duration.zero
    /// Whether nothing but the subject stays.
    package var anonymizes = true
    /// For how long a revocation is attempted before the account counts as deleted without it.
    package var maximumRevocationAge = Duration.seconds(7 * 86_400)
    /// The members of `account.deleted` that say whether grants were revoked, one for each kind of provider that can:
    /// `revoked_at_apple`.
    package var revocationMembers: [String] = []

    package init() {}
}
