internal import MartletCore
package import MartletProvider

/// The caller of a local request, for the access log.
package struct NamedCaller: Sendable, Equatable {
    package let subject: String
    /// `nil` without a session.
    package let sessionID: String?

    package init(subject: String, sessionID: String?) {
        self.subject = subject
        self.sessionID = sessionID
    }
}

/// Where a handler notes the caller of a request as soon as it is known, whatever the response will be.
package final class CallerNote: Sendable {
    private struct Noted {
        var caller: NamedCaller?
        var provider: String?
        var setCookie: String?
    }

    private let noted = Lock(Noted())

    package init() {}

    package var caller: NamedCaller? { noted.withLock { $0.caller } }

    package var provider: String? { noted.withLock { $0.provider } }

    /// The `Set-Cookie` for the caller's session cookie; `nil` if the response does not change it.
    package var setCookie: String? { noted.withLock { $0.setCookie } }

    /// Notes the caller; a later note replaces it.
    package func note(subject: String, sessionID: String?) {
        noted.withLock { $0.caller = NamedCaller(subject: subject, sessionID: sessionID) }
    }

    /// Notes whose credential was rejected, if that is known.
    package func note(_ rejected: RejectedCaller?) {
        guard let rejected else { return }
        note(subject: rejected.subject, sessionID: rejected.sessionID)
        if let provider = rejected.provider { note(provider: provider) }
    }

    /// Notes the provider of the caller, or that of a sign-in; a later note replaces it.
    package func note(provider: String) {
        noted.withLock { $0.provider = provider }
    }

    /// Notes that the response sets or deletes the caller's session cookie; a later note replaces it.
    package func note(setCookie: String) {
        noted.withLock { $0.setCookie = setCookie }
    }
}
