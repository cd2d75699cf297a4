internal import MartletBrowser
internal import MartletCore
internal import MartletPages
internal import MartletResponder

/// The endpoints that browsers load: pages, forms, and the way to a provider and back.
///
/// Errors are pages for navigations, and problem+json for everything else.
struct BrowserEndpoints: Sendable {
    let endpoints: SignInEndpoints
    let setup: BrowserSetup

    func handle(_ request: LocalRequest, at endpoint: BrowserEndpoint) async -> LocalResponse {
        let call = BrowserCall(request, setup, now: endpoints.setup.clock.unixTime)
        do throws(Failure) {
            var response = try await dispatch(call, to: endpoint)
            // Before those that are set: one of them may replace it.
            response.cookies = call.deletions + response.cookies
            return response.rendered(for: call)
        } catch {
            guard call.isNavigation else {
                var response = LocalResponse(refusing: error)
                response.failure?.setCookies = call.deletions
                return response
            }
            var response = errorPage(error, call)
            response.cookies = call.deletions
            return response.rendered(for: call)
        }
    }

    private func dispatch(_ call: BrowserCall, to endpoint: BrowserEndpoint) async throws(Failure) -> BrowserResponse {
        let method = call.request.method == "HEAD" && !endpoint.isCallback ? "GET" : call.request.method
        guard endpoint.methods.contains(method) else { throw .methodNotAllowed(endpoint.allow) }
        guard call.request.bodyBytes <= SignInBody.maximumBytes else { throw .tooLarge(.signInBodyTooLarge) }
        if endpoint.readsLogin(method) { try await endpoints.admitLogin(call.request) }
        switch endpoint {
        case .signIn:
            let flow = SignInFlow(endpoints: endpoints, call: call)
            return try await method == "GET" ? flow.show() : flow.submit()
        case .signUp:
            let flow = SignUpFlow(endpoints: endpoints, call: call)
            return try await method == "GET" ? flow.show() : flow.submit()
        case .link(let kind):
            let flow = LinkFlow(kind: kind, endpoints: endpoints, call: call)
            return try await method == "GET" ? flow.show() : flow.submit()
        case .account: return try await AccountFlow(endpoints: endpoints, call: call).show()
        case .accountAction(let action):
            return try await AccountFlow(endpoints: endpoints, call: call).perform(action)
        case .signOut: return try await SignOutFlow(endpoints: endpoints, call: call).signOut()
        case .signedOut: return SignOutFlow(endpoints: endpoints, call: call).confirmation()
        case .logo(let version):
            guard let logo = setup.images[version] else { throw .noRoute(.signInUnknownEndpoint) }
            return BrowserResponse(content: .logo(logo), status: 200)
        case .start(let provider), .callback(let provider):
            guard let provider else { throw .noRoute(.signInUnknownProvider) }
            let flows = RedirectFlows(endpoints: endpoints, call: call, provider: provider)
            return try await endpoint.isCallback ? flows.finish() : flows.start()
        }
    }

    /// A page that says what happened.
    private func errorPage(_ failure: Failure, _ call: BrowserCall) -> BrowserResponse {
        let page = MessagePage(
            MessagePage.Message(failure), requestID: call.request.requestID, signIn: call.path("sign-in"))
        return BrowserResponse.page(page, status: failure.status).because(of: failure)
    }
}

extension MessagePage.Message {
    init(_ failure: Failure) {
        switch failure.status {
        case 403 where failure.reason == .browserCrossSite: self = .crossSite
        case 401, 403: self = .notAllowed
        case 404: self = .notFound
        case 429: self = .throttled(seconds: failure.wait)
        case 503: self = .unavailable(seconds: failure.wait)
        case 500...: self = .internalError
        default: self = .invalid
        }
    }
}
