internal import MartletCore
internal import MartletCrypto
package import MartletJSON

/// A security event: what was done, by whom, from where, and the outcome.
///
/// It never holds a token, a password, or an address of a mailbox.
package struct AuditEvent: Sendable, Equatable {
    /// What was done.
    package enum Kind: String, Sendable, CaseIterable {
        case login, link, unlink, registration, reauthentication, notification, revoke, deletion, reload
        case rejection
        case reclaim = "account_reclaimed"
        case refreshTheft = "refresh_theft"
        case passwordChange = "password_change"
        case passwordReset = "password_reset"
        case adminChange = "admin_change"
        case keyRotation = "key_rotation"
    }

    /// The outcome.
    package enum Outcome: String, Sendable { case success, rejected, failed }

    /// Longer texts are cut.
    private static let maximumTextBytes = 512

    package let kind: Kind
    package let outcome: Outcome
    /// Everything else, in the order in which it is written.
    package private(set) var members: JSONObject

    package init(_ kind: Kind, _ outcome: Outcome = .success) {
        self.kind = kind
        self.outcome = outcome
        members = ["event": .string(kind.rawValue), "outcome": .string(outcome.rawValue)]
    }

    /// Adds a text, cut to a sensible length; none for `nil` and an empty text.
    package mutating func set(_ name: String, _ text: String?) {
        guard let text, !text.isEmpty else { return }
        members[name] = .string(Self.cut(text))
    }

    /// Adds a number.
    package mutating func set(_ name: String, _ number: Int) { members[name] = .integer(Int64(number)) }

    /// Adds a list of texts; none for an empty list.
    package mutating func set(_ name: String, _ texts: [String]) {
        guard !texts.isEmpty else { return }
        members[name] = .array(texts.map { .string(Self.cut($0)) })
    }

    /// Adds whom it is about: an account's subject, or `<provider>:<provider subject>` without accounts.
    ///
    /// Where that has the address of a mailbox, a part of its hash takes its place.
    package mutating func set(subject: String?) {
        set("subject", subject.map { Self.name(ofSubject: $0) })
    }

    /// How the log names a subject.
    package static func name(ofSubject subject: String) -> String {
        guard subject.utf8.contains(UInt8(ascii: "@")) else { return subject }
        let name = subject.utf8.firstIndex(of: UInt8(ascii: ":")).map { subject[...$0] } ?? ""
        return "\(name)sha256-\(Hexadecimal.text(SHA256.digest(Array(subject.utf8)).prefix(8)))"
    }

    private static func cut(_ text: String) -> String {
        guard text.utf8.count > maximumTextBytes else { return text }
        return String(decoding: text.utf8.prefix(maximumTextBytes), as: UTF8.self)
    }

    /// The members as they stand in a line, with the closing brace.
    func body(at milliseconds: Int64) -> [UInt8] {
        Array("\"time\":\"\(InternetTime.text(milliseconds: milliseconds))\",".utf8) + JSON.write(members).dropFirst()
    }
}

/// Takes security events for the audit log.
package protocol AuditRecording: Sendable {
    /// Takes an event; never waits.
    func record(_ event: AuditEvent)
}
