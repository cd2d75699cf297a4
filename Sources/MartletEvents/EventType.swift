/// The type of an event, by its name in `webhooks[].events`.
///
/// Not an enum, because an outbox may hold events of types that only a newer version knows.
package struct EventType: RawRepresentable, Hashable, Sendable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    /// A new account; `data.provider` is the provider of its first identity.
    package static let accountCreated = EventType(rawValue: "account.created")
    /// An account was deleted; `data.reason` says why, `data.revoked_at_apple` whether the grants of its identities were
    /// revoked.
    package static let accountDeleted = EventType(rawValue: "account.deleted")
    /// A login took the deletion of an account back.
    package static let accountRestored = EventType(rawValue: "account.restored")
    /// The owner of a user's address was proved for the first time, and what was added to the account before is gone;
    /// `data.identities` has the providers of the identities, `data.keys` the ids of the API keys.
    package static let accountReclaimed = EventType(rawValue: "account.reclaimed")
    /// A further identity of an account; `data.provider` is its provider.
    package static let identityLinked = EventType(rawValue: "identity.linked")
    /// An identity was removed from its account; `data.provider` is its provider.
    package static let identityUnlinked = EventType(rawValue: "identity.unlinked")

    /// The user has withdrawn the consent, or deleted the account, at the issuer; `data.provider` is the provider.
    package static let identityRevoked = EventType(rawValue: "identity.revoked")
    /// An identity has another subject at its issuer, because the app moved to another team of developers;
    /// `data.provider` is the provider.
    package static let identityTransferred = EventType(rawValue: "identity.transferred")
    /// A login brought another email address than the one before; `data.provider` is the identity's provider.
    package static let emailChanged = EventType(rawValue: "email.changed")
    /// A session was ended; `data` has its `session_id`, its `provider` and the `reason`.
    package static let sessionRevoked = EventType(rawValue: "session.revoked")
    /// A login; `data.provider` is the provider. Only for webhooks that ask for it.
    package static let loginSucceeded = EventType(rawValue: "login.succeeded")
    /// A login that was rejected; the subject is the provider's name, `data.reason` the code of the error. Only for
    /// webhooks that ask for it.
    package static let loginFailed = EventType(rawValue: "login.failed")

    /// A mail to a user is to be sent; `data` is a ``MailRequest``.
    package static let mailRequested = EventType(rawValue: "mail.requested")

    /// Every type that this version records.
    package static let all = [
        accountCreated, accountDeleted, accountRestored, accountReclaimed, identityLinked, identityUnlinked,
        identityRevoked,
        identityTransferred, emailChanged, sessionRevoked, loginSucceeded, loginFailed, mailRequested,
    ]

    /// Whether its events contain secrets.
    var isSecret: Bool { rawValue.hasPrefix("mail.") }
    /// Whether `*` leaves its events out: those with secrets, and logins, of which there are many.
    var comesOnlyByName: Bool { isSecret || rawValue.hasPrefix("login.") }

    /// The `type` of the CloudEvent.
    package var cloudEventType: String { "dev.martlet.\(rawValue)" }
}

/// A pattern of event types: a type, `account.*` for all types of a kind, or `*` for all but `login.*`, of which there
/// are too many, and `mail.*`, which contain one-time tokens.
package struct EventPattern: Sendable, Equatable {
    private enum Form: Equatable {
        case type(EventType)
        /// With the final dot.
        case prefix(String)
        case any
    }

    private let form: Form

    /// `nil` if the text is not a pattern that matches a type.
    package init?(_ text: String) {
        if let type = EventType.all.first(where: { $0.rawValue == text }) {
            form = .type(type)
        } else if text == "*" {
            form = .any
        } else if text.hasSuffix(".*"), EventType.all.contains(where: { $0.rawValue.hasPrefix(text.dropLast()) }) {
            form = .prefix(String(text.dropLast()))
        } else {
            return nil
        }
    }

    /// Whether events of a type match.
    package func matches(_ type: EventType) -> Bool {
        switch form {
        case .type(let only): only == type
        case .prefix(let prefix): type.rawValue.hasPrefix(prefix)
        case .any: !type.comesOnlyByName
        }
    }

    /// Every pattern, for suggestions.
    package static var all: [String] {
        let types = EventType.all.map(\.rawValue)
        let kinds = Set(types.map { type in String(type.prefix { $0 != "." }) + ".*" })
        return types + kinds.sorted() + ["*"]
    }
}
