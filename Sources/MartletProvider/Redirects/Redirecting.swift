public import MartletConfig
public import MartletCore

/// A provider that signs users in at another site: `GET /auth/start/{provider}` sends the browser there, and the site
/// sends it back to `/auth/callback/{provider}`.
///
/// The provider stores nothing in between: the core binds a ``RedirectAttempt`` to the browser and passes it to both
/// calls. The core also accepts one response for each attempt, and only from the browser that began it.
public protocol Redirecting: FailureLimiting {
    /// How a kind of browser signs in; `nil` if it cannot, or if the configuration has no redirects.
    ///
    /// Called for every sign-in page, so it must return immediately.
    func redirectFlow(in browser: BrowserKind) -> RedirectFlow?

    /// The URL to send the browser to.
    /// - Parameters:
    ///   - attempt: what the response must be bound to; its `redirectURI` and `state` are part of the URL.
    ///   - language: the language of the page that links there, for sites that accept one; `nil` if it is unknown.
    ///   - deadline: the instant after which a result is of no use.
    /// - Throws: `unavailable` if the URL is not known now, `notFound` if the browser cannot sign in.
    func authorizationURL(
        for attempt: RedirectAttempt, language: LanguageTag?, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String

    /// Authenticates the user of a browser that has come back; may suspend, but must not block a thread.
    ///
    /// Single-use values of the response, such as a code, are consumed by this call, whether or not it succeeds.
    /// - Returns: the identity, as at a login, or that the user has cancelled.
    /// - Throws: `malformed` for fields that the site does not send, `rejected` or `denied` for a response that proves
    ///   nothing, `unavailable` if it could not be verified.
    func complete(
        _ callback: RedirectCallback, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> RedirectOutcome
}

/// How users sign in by redirect.
public struct RedirectFlow: Sendable, Hashable {
    /// How the response comes back (OAuth 2.0 Multiple Response Types §2.1, Form Post Response Mode).
    public enum ResponseMode: String, Sendable, CaseIterable, ConfigurationValue {
        /// By GET, in the query.
        case query
        /// By a POST from a page of the other site, as a form; browsers send only `SameSite=None` cookies with it.
        case formPost = "form_post"

        /// The only method that the callback accepts.
        public var method: String { self == .query ? "GET" : "POST" }
    }

    public let responseMode: ResponseMode
    /// The origins that the browser visits, such as `https://appleid.apple.com`: sources of a `form-action` in a
    /// `Content-Security-Policy`.
    public let origins: [String]

    public init(responseMode: ResponseMode, origins: [String]) {
        self.responseMode = responseMode
        self.origins = origins
    }
}

/// A kind of browser, as far as it decides how users sign in. It is the client's own claim and proves nothing.
public enum BrowserKind: String, Sendable, CaseIterable {
    /// Any browser that is not one of the others.
    case standard
    /// The browser of WeChat's app.
    case weChat = "wechat"

    /// The kind that a `User-Agent` names.
    public init(userAgent: String?) {
        self = userAgent?.contains("MicroMessenger") == true ? .weChat : .standard
    }
}

/// The result of sign-in by redirect.
public enum RedirectOutcome: Sendable {
    case signedIn(SignIn)
    /// The user has cancelled at the other site.
    case cancelled
}
