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
        let detail: String
        switch await source.refreshKeys(of: provider) {
        case .done:
            let document: JSONObject = ["provider": .string(provider), "state": "refreshed"]
            return .text(200, "application/json", String(decoding: JSON.write(document), as: UTF8.self) + "\n")
        case .unknownProvider: detail = "the configuration has no provider \(provider)"
        case .hasNoKeys: detail = "provider \(provider) uses no keys of an issuer"
        case .failed(let reason):
            return AdminProblem(status: 503, code: "auth_unavailable", allow: nil)
                .response(request.requestID, with: ["detail": .string(reason)])
        }
        return AdminProblem.notFound.response(request.requestID, with: ["detail": .string(detail)])
    }
}
