package import MartletCore
package import MartletProvider
package import MartletRouter

/// A request that somebody wants explained, as a client would send it.
package struct AskedRequest: Sendable {
    package let method: String
    /// The target in origin form: path and, if there is one, query.
    package let target: String
    package let host: String
    /// The bearer token, `nil` for a request without credential.
    package let token: Secret?

    package init(method: String, target: String, host: String, token: Secret?) {
        self.method = method
        self.target = target
        self.host = host
        self.token = token
    }
}

/// What becomes of a request, phase by phase, as far as it comes; for `martlet explain`.
///
/// Never holds the credential.
package struct RequestExplanation: Sendable {
    /// Where the request ends.
    package enum Outcome: Sendable {
        /// The upstream of the route gets it; the client gets what that answers.
        case forwarded
        /// The gateway answers it itself.
        case answeredHere
        case refused(ClientAnswer)
    }

    /// The normalised path; `nil` where the head or the path is refused.
    package internal(set) var path: String?
    /// Why the routes before the matching one (or all, where none matches) did not take the request.
    package internal(set) var misses: [RouteMiss] = []
    package internal(set) var route: Route?
    /// Who judges the credential, where there is one that somebody judges.
    package internal(set) var provider: ProviderHandle?
    /// How what the provider depends on was when it judged.
    package internal(set) var health: ProviderHealth?
    package internal(set) var checks: [CheckVerdict] = []
    package internal(set) var principal: Principal?
    package internal(set) var policy: [CheckVerdict] = []
    /// The header lines that are added for the upstream.
    package internal(set) var headers: [String] = []
    package internal(set) var droppedHeaders: [DroppedHeader] = []
    /// Whether the credential was used up here, so that the upstream does not get it.
    package internal(set) var consumesCredential = false
    /// The path that the upstream gets, without the query.
    package internal(set) var upstreamPath: String?
    package internal(set) var outcome = Outcome.forwarded
}

/// An answer that the gateway gives itself, as a client and as the log see it.
package struct ClientAnswer: Sendable {
    package let status: Int
    /// What the client sees.
    package let code: String
    /// What logs and metrics say.
    package let reason: ErrorCode
    /// The values of `WWW-Authenticate`.
    package let challenges: [String]
    /// The value of `Allow`.
    package let allow: String?

    /// - Parameter offersBasic: whether the route takes names and passwords.
    init(_ failure: Failure, offersBasic: Bool) {
        status = failure.status
        code = "\(failure.code)"
        reason = failure.reason
        let own = failure.challengeText.map { ["\($0)"] } ?? []
        challenges = own + (offersBasic && failure.status == 401 ? ["\(Failure.basicChallenge)"] : [])
        allow = failure.allow
    }
}
