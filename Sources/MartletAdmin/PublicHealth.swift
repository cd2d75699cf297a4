internal import MartletCore
package import MartletResponder

/// The response of public listeners at `health.path`: whether requests should be sent here, and nothing else.
///
/// Any client can request it at any rate, so the state of the dependencies is cached.
package final class PublicHealth: Sendable {
    private static let cacheLifetime = Duration.milliseconds(200)

    private struct CachedState {
        var isServing = false
        var until = MonotonicTime(nanoseconds: 0)
    }

    private let cached = Lock(CachedState())

    package init() {}

    /// Responds to a health check.
    package func respond(to request: LocalRequest, _ source: any AdminSource) -> LocalResponse {
        let now = source.clock.monotonicTime
        let known = cached.withLock { now < $0.until ? $0.isServing : nil }
        let isServing = known ?? Readiness(source).isServing
        if known == nil {
            cached.withLock { $0 = CachedState(isServing: isServing, until: now + Self.cacheLifetime) }
        }
        return Self.response(isServing: isServing && !source.isDraining, request)
    }

    /// The response to a health check.
    package static func response(isServing: Bool, _ request: LocalRequest) -> LocalResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return AdminProblem.methodNotAllowed(["GET", "HEAD"]).response(request.requestID)
        }
        var response = LocalResponse.text(
            isServing ? 200 : 503, "text/plain; charset=utf-8", isServing ? "ready\n" : "not ready\n")
        if !isServing { response.fields.append(("Retry-After", "1")) }
        return response
    }
}
