internal import MartletCore
internal import MartletResponder

/// Which web pages may call the endpoints (CORS, Fetch §3.2): those of the configured origins, exactly as written.
///
/// Credentials mode is never allowed: tokens travel in `Authorization` and bodies, so nothing here needs a cookie.
struct CrossOrigin: Sendable {
    let origins: [String]
    /// Whether their requests may have a proof of a key.
    let allowsProofs: Bool

    /// The request's origin, if it is configured.
    func origin(of request: LocalRequest) -> String? {
        let sent = request.values(of: "origin")
        guard sent.count == 1, let origin = sent.first else { return nil }
        return origins.first { $0.hasSameBytes(as: origin) }
    }

    /// The response to a preflight; `nil` for an `OPTIONS` that is not one, or of another origin.
    func preflight(_ request: LocalRequest, for endpoint: Endpoint) -> LocalResponse? {
        guard endpoint.isForPages, origin(of: request) != nil,
            request.field("Access-Control-Request-Method") != nil
        else { return nil }
        var response = SignInResponse.noContent
        response.fields += [
            (name: "Access-Control-Allow-Methods", value: endpoint.allow),
            (name: "Access-Control-Allow-Headers", value: "Authorization, Content-Type\(allowsProofs ? ", DPoP" : "")"),
            (name: "Access-Control-Max-Age", value: "600"),
        ]
        return response
    }

    /// Adds the fields that tell the browser which pages may read the response.
    func addingFields(to response: LocalResponse, for request: LocalRequest) -> LocalResponse {
        guard !origins.isEmpty else { return response }
        let origin = origin(of: request)
        var response = response
        if let failure = response.failure {
            response.failure = failure.readable(by: origin)
            return response
        }
        response.fields.append((name: "Vary", value: "Origin"))
        guard let origin else { return response }
        response.fields += [
            (name: "Access-Control-Allow-Origin", value: origin),
            (name: "Access-Control-Expose-Headers", value: "\(Failure.exposedFields)"),
        ]
        return response
    }
}
