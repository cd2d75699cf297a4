internal import MartletCore
internal import MartletProxy

/// What operators ask on the admin listener; never on the public one.
final class AdminEndpoints: Sendable {
    private unowned let gateway: Gateway

    init(_ gateway: Gateway) { self.gateway = gateway }

    func answer(_ request: LocalRequest) async -> LocalResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return .text(405, "text/plain; charset=utf-8", "only GET and HEAD\n")
        }
        switch request.path {
        case "/livez": return .text(200, "text/plain; charset=utf-8", "alive\n")
        case "/readyz", "/healthz": return Readiness(gateway).response
        case "/metrics":
            return .text(200, "text/plain; version=0.0.4; charset=utf-8", await MetricsPage(gateway).text)
        default: return .text(404, "text/plain; charset=utf-8", "not here\n")
        }
    }
}
