package import MartletConfig
package import MartletCore
internal import MartletDecisions
package import MartletJSON
package import MartletProvider
internal import MartletResponder
package import MartletRouter

/// A request to explain, as a client would send it.
package struct ExplainedRequest: Sendable {
    package let method: String
    /// The target in origin form: path and, if there is one, query.
    package let target: String
    /// The `Host` value; `nil` where it is among ``fields``.
    package let host: String?
    /// More header lines, `Name: value`, as they are sent; may hold a credential.
    package let fields: [Secret]
    /// The bearer token, `nil` for none.
    package let token: Secret?
    /// Who is calling, without any credential.
    package let assumed: AssumedCaller?
    /// The listener that it comes in at.
    package let listener: ExplainedListener
    /// The client's certificate in DER.
    package let certificate: [UInt8]?

    package init(
        method: String, target: String, host: String?, fields: [Secret] = [], token: Secret?,
        assumed: AssumedCaller? = nil, listener: ExplainedListener = ExplainedListener(), certificate: [UInt8]? = nil
    ) {
        self.listener = listener
        self.certificate = certificate
        self.method = method
        self.target = target
        self.host = host
        self.fields = fields
        self.token = token
        self.assumed = assumed
    }
}

/// The listener that a request comes in at.
package struct ExplainedListener: Sendable {
    /// Whether it has TLS.
    let isSecure: Bool
    /// The https port that it redirects every request to; `nil` serves requests.
    let redirectPort: UInt16?
    /// Where it responds to health checks itself, before anything else.
    let healthPath: [UInt8]?

    /// One with TLS.
    package init() { (isSecure, redirectPort, healthPath) = (true, nil, nil) }

    /// - Parameter scheme: of the request's URL, `http` or `https`: the first listener of that kind; `nil` for the first
    ///   that serves requests.
    package init(of server: ServerConfiguration, scheme: String? = nil) {
        let listeners = server.listeners
        let listener =
            listeners.first { listener in
                guard let scheme else { return listener.redirectsToHTTPSPort == nil }
                return scheme.hasSameBytes(as: "https") == (listener.tls != nil)
            } ?? listeners.first
        isSecure = listener?.tls != nil
        redirectPort = listener?.redirectsToHTTPSPort
        healthPath = (listener?.health).map { Array($0.path.utf8) }
    }
}

/// An assumed caller: the principal for policy and header templates, without a token.
package struct AssumedCaller: Sendable {
    /// The provider that verified the caller; `nil` for the first one of the route.
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

    /// The principal that a route would see, verified by `provider`.
    func principal(by provider: String) -> Principal {
        let identity = Identity(
            providerSubject: providerSubject, issuer: issuer, claims: claims, authTime: authTime, issuedAt: issuedAt,
            expiresAt: expiresAt)
        guard let subject else { return Principal(identity: identity, provider: provider, sessionID: sessionID) }
        return Principal(identity: identity, provider: provider, subject: subject, sessionID: sessionID)
    }
}

/// The outcome of a request, phase by phase, as far as it gets; for `martlet explain`; never contains the credential.
package struct RequestExplanation: Sendable {
    /// Where the request ends.
    package enum Outcome: Sendable {
        /// It is forwarded; the client gets the upstream's response.
        case forwarded
        /// The gateway responds to it itself.
        case answeredLocally
        /// Its route has a response of its own.
        ///
        /// - Parameter location: where a redirect leads.
        case responded(status: Int, location: String?)
        /// It is a preflight, to which the gateway responds.
        ///
        /// - Parameter isAllowed: whether pages of its origin may use the route.
        case preflight(isAllowed: Bool)
        case refused(ClientResponse)
        /// Something needed for the decision was unavailable; a gateway in the same situation responds like this.
        ///
        /// - Parameter because: what was unavailable, in one line; may be empty.
        case undecidable(ClientResponse, because: String)
    }

    /// How the caller authenticates.
    package enum CredentialForm: String, Sendable {
        case none, bearer, session, basic, cookie, header, certificate, other, assumed
    }

    /// The normalized path; `nil` where the head or the path is rejected.
    package internal(set) var path: String?
    /// Why the routes before the matching one (or all, where none matches) did not match.
    package internal(set) var misses: [RouteMiss] = []
    package internal(set) var route: Route?
    package internal(set) var credential = CredentialForm.none
    /// The provider that verifies the credential, if there is one.
    package internal(set) var provider: ProviderHandle?
    /// The provider's health at the time of the verification.
    package internal(set) var health: ProviderHealth?
    package internal(set) var checks: [CheckOutcome] = []
    package internal(set) var principal: Principal?
    /// Whether the principal's account would only be created by the request, so that its subject is not known yet.
    package internal(set) var isNewAccount = false
    package internal(set) var policy: [CheckOutcome] = []
    /// The header lines that are added for the upstream.
    package internal(set) var headers: [String] = []
    package internal(set) var droppedHeaders: [DroppedHeader] = []
    /// The names of the request's fields that are not forwarded, as they were spelled.
    package internal(set) var removedFields: [String] = []
    /// Whether the gateway consumes the credential, so that it is not forwarded.
    package internal(set) var consumesCredential = false
    /// The index of the upstream; `nil` where there is none, or the client's address decides.
    package internal(set) var upstream: Int?
    /// The path that the upstream gets, with the query of a rewrite but without the client's.
    package internal(set) var upstreamPath: String?
    /// What the response tells the page that sent the request, if the route has rules for that.
    var crossOrigin: CrossOriginFields?
    /// What it has besides as that to a preflight.
    var preflightFields: [String] = []
    /// The values of `Set-Cookie` that delete cookies of no use.
    package internal(set) var setCookies: [String] = []
    package internal(set) var outcome = Outcome.forwarded

    /// The lines by which the response tells the page that sent the request what it may do.
    package var crossOriginFields: [String] {
        crossOrigin.map { $0.texts(isOwn: !isForwarded) + preflightFields } ?? []
    }

    /// Whether the response is an upstream's.
    package var isForwarded: Bool { if case .forwarded = outcome { true } else { false } }

    /// Whether the request gets the response of its route.
    package var isAllowed: Bool {
        switch outcome {
        case .forwarded, .answeredLocally, .responded, .preflight: true
        case .refused, .undecidable: false
        }
    }
}

/// A response that the gateway writes itself, as the client and the log see it.
package struct ClientResponse: Sendable {
    package let status: Int
    /// What the client sees.
    package let code: String
    /// What logs and metrics say.
    package let reason: ErrorCode
    /// The condition of the route that failed, as the log names it.
    package let condition: String?
    /// The values of `WWW-Authenticate`.
    package let challenges: [String]
    /// The value of `Allow`.
    package let allow: String?
    /// The value of `Location`.
    package let location: String?
    /// The values of `Set-Cookie`.
    package let setCookies: [String]

    /// - Parameters:
    ///   - offersBasic: whether the route accepts names and passwords.
    ///   - setCookies: that the response has in any case.
    init(_ failure: Failure, offersBasic: Bool, setCookies: [String]) {
        status = failure.status
        code = "\(failure.code)"
        reason = failure.reason
        condition = failure.condition
        let own = failure.challengeText.map { [$0] } ?? []
        challenges = own + (offersBasic && failure.status == 401 ? ["\(Failure.basicChallenge)"] : [])
        allow = failure.allow
        location = failure.location
        self.setCookies = setCookies + failure.setCookies
    }
}
