package import MartletCore
package import MartletJSON
package import MartletProvider
package import MartletRouter

/// A request that somebody wants explained, as a client would send it.
package struct AskedRequest: Sendable {
    package let method: String
    /// The target in origin form: path and, if there is one, query.
    package let target: String
    /// What `Host` says; `nil` where it is among ``fields``.
    package let host: String?
    /// More header lines, `Name: value`, as they are sent; may hold a credential.
    package let fields: [Secret]
    /// The bearer token, `nil` for none.
    package let token: Secret?
    /// Who is calling, without any credential.
    package let assumed: AssumedCaller?

    package init(
        method: String, target: String, host: String?, fields: [Secret] = [], token: Secret?,
        assumed: AssumedCaller? = nil
    ) {
        self.method = method
        self.target = target
        self.host = host
        self.fields = fields
        self.token = token
        self.assumed = assumed
    }
}

/// A caller taken for granted: what the policy and the header templates would see of somebody, without a token.
package struct AssumedCaller: Sendable {
    /// The provider that vouches; `nil` for the first one of the route.
    package var provider: String?
    package var providerSubject: String
    /// `nil` for `<provider>:<provider subject>`.
    package var subject: String?
    package var issuer: String
    package var sessionID: String?
    package var claims: JSONObject
    package var authTime: UnixTime
    /// When the proof was made; `max_age` counts from here.
    package var issuedAt: UnixTime
    package var expiresAt: UnixTime

    package init(
        provider: String?, providerSubject: String, subject: String?, issuer: String, sessionID: String?,
        claims: JSONObject, authTime: UnixTime, issuedAt: UnixTime, expiresAt: UnixTime
    ) {
        self.provider = provider
        self.providerSubject = providerSubject
        self.subject = subject
        self.issuer = issuer
        self.sessionID = sessionID
        self.claims = claims
        self.authTime = authTime
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
    }

    /// The principal that a route would see, vouched for by `provider`.
    func principal(by provider: String) -> Principal {
        let identity = Identity(
            providerSubject: providerSubject, issuer: issuer, claims: claims, authTime: authTime, issuedAt: issuedAt,
            expiresAt: expiresAt)
        guard let subject else { return Principal(identity: identity, provider: provider, sessionID: sessionID) }
        return Principal(identity: identity, provider: provider, subject: subject, sessionID: sessionID)
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
        /// Something that was needed for the decision could not be asked; a gateway in the same position answers so.
        ///
        /// - Parameter because: what could not be asked, in one line; may be empty.
        case undecidable(ClientAnswer, because: String)
    }

    /// How the caller was to be proved.
    package enum CredentialForm: String, Sendable { case none, bearer, session, basic, other, assumed }

    /// The normalised path; `nil` where the head or the path is refused.
    package internal(set) var path: String?
    /// Why the routes before the matching one (or all, where none matches) did not take the request.
    package internal(set) var misses: [RouteMiss] = []
    package internal(set) var route: Route?
    package internal(set) var credential = CredentialForm.none
    /// Who judges the credential, where there is one that somebody judges.
    package internal(set) var provider: ProviderHandle?
    /// How what the provider depends on was when it judged.
    package internal(set) var health: ProviderHealth?
    package internal(set) var checks: [CheckVerdict] = []
    package internal(set) var principal: Principal?
    /// Whether the principal's account would only be made by the request, so that its subject is not known yet.
    package internal(set) var isNewAccount = false
    package internal(set) var policy: [CheckVerdict] = []
    /// The header lines that are added for the upstream.
    package internal(set) var headers: [String] = []
    package internal(set) var droppedHeaders: [DroppedHeader] = []
    /// The names of the request's own fields that the upstream does not get, as they were spelled.
    package internal(set) var removedFields: [String] = []
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
