internal import MartletBrowser
internal import MartletCore
internal import MartletHTTP
internal import MartletResponder

/// The values of the gateway's cookies in a request; empty ones are absent.
struct BrowserCookies: Sendable {
    private(set) var session: Secret?
    /// Those of sign-ins that wait for a provider, in the order in which the browser sent them.
    private var starts: [(name: String, value: [UInt8])] = []
    private(set) var form: [UInt8]?
    /// The names of those that cannot be used, which are absent, too.
    private(set) var unusable: [String] = []
    /// Why; `nil` where a request without them is served.
    private let problem: Failure?

    init(_ request: LocalRequest, _ cookies: GatewayCookies) {
        let values = request.values(of: "cookie")
        guard !values.isEmpty else {
            problem = nil
            return
        }
        // As if they were one field (RFC 9113 §8.2.3), so that a cookie in two of them is found.
        let bytes = Array(values.joined(separator: "; ").utf8)
        var found = FoundCookies()
        cookies.find(in: bytes.span, ByteRange(from: 0, to: bytes.count), &found)
        session = found.session.map { Secret(Array(bytes[$0.bounds])) }
        form = found.form.map { Array(bytes[$0.bounds]) }
        starts = found.starts.map {
            (String(decoding: bytes[$0.name.bounds], as: UTF8.self), Array(bytes[$0.value.bounds]))
        }
        unusable = found.unusable
        problem = found.problem.map { .browser($0) }
    }

    /// - Throws: 400 for a cookie that is repeated, malformed or too long, where no person would see the way out.
    func checked(_ isNavigation: Bool) throws(Failure) -> BrowserCookies {
        if let problem, !isNavigation { throw problem }
        return self
    }

    /// The cookie that forms are bound to, if it is one of the gateway's.
    var browser: [UInt8]? { form.flatMap { FormTokens.isBrowser($0) ? $0 : nil } }

    /// The attempts of the cookies that the gateway has sealed.
    func attempts(_ seal: AttemptSeal) -> SignInAttempts {
        var attempts = SignInAttempts()
        for cookie in starts {
            if let attempt = seal.open(cookie.value) { attempts.add(attempt, bytes: cookie.value.count) }
        }
        return attempts
    }

    /// The names of the cookies that hold no attempt, although they should.
    func withoutAttempt(_ seal: AttemptSeal) -> [String] {
        starts.filter { seal.open($0.value) == nil }.map(\.name)
    }
}
