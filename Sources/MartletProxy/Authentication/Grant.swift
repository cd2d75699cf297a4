internal import MartletCore
internal import MartletProvider

/// What a route decided about a verified credential: kept beside it, its header block attached.
struct Grant {
    /// Number of the reason for a denial; −1 when the caller may pass.
    let denial: Int32
    /// Index into the snapshot's providers.
    let provider: Int32
    /// What revocations call it: see ``ProvenPrincipal/number``.
    let number: UInt64
    /// Until when the credential is good, in milliseconds of Unix time; the grant may have to be made anew before.
    let end: Int64
}

/// The principal behind a verified credential.
///
/// A class because it is handed from thread to thread and from table to table.
final class ProvenPrincipal: Sendable {
    let principal: Principal
    /// What revocations call it: the session's number, or that of the subject of a credential that is no session's.
    let number: UInt64
    /// When it must be asked for again, in Unix seconds.
    let expires: Int64
    /// When the credential itself ends, in milliseconds of Unix time.
    let end: Int64

    init(principal: Principal, number: UInt64, expires: Int64, end: Int64) {
        self.principal = principal
        self.number = number
        self.expires = expires
        self.end = end
    }
}

/// The outcome of judging a credential.
typealias Verdict = Result<ProvenPrincipal, AuthenticationError>

/// A verdict as it is handed through the phases: one word, where nearly every request has none.
final class Judgement {
    let verdict: Verdict

    init(_ verdict: Verdict) { self.verdict = verdict }
}

/// What kind of credential a request carries; its form alone tells.
enum CredentialForm: UInt8 {
    /// One of the gateway's own tokens.
    case session
    /// A bearer token that a provider judges.
    case direct
    /// A name and a password (RFC 7617).
    case basic
}
