/// What the gateway sends itself for the requests of a route.
package enum RouteResponse: Sendable {
    case redirect(RedirectTemplate, status: Int)
    /// - Parameter contentType: `nil` without a body.
    case fixed(status: Int, contentType: String?, body: [UInt8])

    package var status: Int {
        switch self {
        case .redirect(_, let status), .fixed(let status, _, _): status
        }
    }
}
