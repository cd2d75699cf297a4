internal import MartletJSON
internal import MartletResponder

/// The outcome of a request to fetch the keys of a provider's issuer.
package enum KeyRefresh: Sendable, Equatable {
    case done
    /// The configuration has no such provider.
    case unknownProvider
    /// The provider uses no keys of an issuer.
    case hasNoKeys
    /// The issuer has no newer ones, for that reason.
    case failed(String)
}

/// `POST /providers/{name}/refresh`: fetches the keys of the provider's issuer now, whatever their age.
enum AdminProviders {
    static func respond(
        to request: LocalRequest, _ provider: String, _ source: any AdminSource
    ) async -> LocalResponse {
        let problem: AdminProblem
        switch await source.refreshKeys(of: provider) {
        case .done: return .admin(["provider": .string(provider), "state": "refreshed"])
        case .unknownProvider: problem = .notFound("the configuration has no provider \(provider)")
        case .hasNoKeys: problem = .notFound("provider \(provider) uses no keys of an issuer")
        case .failed(let reason): problem = .unavailable(reason)
        }
        return problem.response(request.requestID)
    }
}
