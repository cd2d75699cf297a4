private import Synchronization

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
    private let noted = Mutex<NamedCaller?>(nil)

    package init() {}

    package var caller: NamedCaller? { noted.withLock { $0 } }

    /// Notes the caller; a later note replaces it.
    package func note(subject: String, sessionID: String?) {
        noted.withLock { $0 = NamedCaller(subject: subject, sessionID: sessionID) }
    }
}
