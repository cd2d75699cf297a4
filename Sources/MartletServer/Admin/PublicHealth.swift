internal import MartletCore
internal import MartletProxy
private import Synchronization

/// What a public listener answers at `health.path`: whether requests should come here, and nothing else.
///
/// Anybody may ask as often as they like, so dependencies are looked at once in a while for all who do.
final class PublicHealth: Sendable {
    private static let lookInterval = Duration.milliseconds(200)

    private struct Found {
        var isServing = false
        var until = MonotonicTime(nanoseconds: 0)
    }

    private let found = Mutex(Found())

    func answer(_ request: LocalRequest, _ gateway: Gateway) -> LocalResponse {
        let now = gateway.services.clock.monotonicTime
        let isServing = found.withLock { found in
            if now >= found.until {
                found = Found(isServing: Readiness(gateway).isServing, until: now + Self.lookInterval)
            }
            return found.isServing
        }
        return Self.response(isServing: isServing && !gateway.isDraining, request)
    }

    static func response(isServing: Bool, _ request: LocalRequest) -> LocalResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return AdminProblem.methodNotAllowed.response(request.requestID)
        }
        var response = LocalResponse.text(
            isServing ? 200 : 503, "text/plain; charset=utf-8", isServing ? "ready\n" : "not ready\n")
        if !isServing { response.fields.append(("Retry-After", "1")) }
        return response
    }
}
