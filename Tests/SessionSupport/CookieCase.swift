package import MartletCore
internal import MartletProvider
package import MartletSession
internal import MartletTesting

/// One course of events of a session with a cookie: when which token is presented, and what it gets. Tokens are
/// numbered in the order in which they are issued; with `access_ttl` 900 s and a grace period of 30 s unless changed.
package struct CookieCase: Sendable, CustomStringConvertible {
    /// What happens to a token.
    package enum Event: Sendable {
        /// It is accepted and stays, is replaced by the token with this number, or is rejected.
        case use(Int, Result)
        /// A privilege change.
        case reissue(Int, Result)
        case inspect(Int, Result)
    }

    /// What it gets.
    package enum Result: Sendable, Equatable {
        case stays
        case next(Int)
        case refused(ErrorCode)
    }

    package let description: String
    let access: Duration
    let grace: Duration
    /// The time in milliseconds since the login, and the event.
    let events: [(at: Int64, Event)]

    init(
        _ description: String, access: Duration = .seconds(900), grace: Duration = .seconds(30),
        _ events: [(at: Int64, Event)]
    ) {
        self.description = description
        self.access = access
        self.grace = grace
        self.events = events
    }

    /// Runs the case on a backend.
    /// - Throws: `TestFailure` at the first event with another result.
    package func run(on backend: any SessionBackend, startingAt start: Int64) async throws {
        let bench = SessionBench(backend: backend, startingAt: start) { policy in
            policy.accessTTL = access
            policy.refreshReuseGrace = grace
            policy.refreshTTL = .seconds(200_000)
            policy.idleTimeout = .seconds(150_000)
        }
        let login = try await bench.cookieLogin()
        var tokens = [login.token]
        for (at, event) in events {
            bench.now.withLock { $0 = start + at }
            let (number, expected): (Int, Result)
            var issued: Secret?
            var code: ErrorCode?
            switch event {
            case .use(let token, let result):
                (number, expected) = (token, result)
                do throws(AuthenticationError) {
                    issued = try await bench.use(tokens[token]).replacement?.token
                } catch { code = error.code }
            case .reissue(let token, let result):
                (number, expected) = (token, result)
                do throws(SessionError) { issued = try await bench.reissue(tokens[token]).token } catch {
                    code = error.code
                }
            case .inspect(let token, let result):
                (number, expected) = (token, result)
                do throws(AuthenticationError) {
                    issued = try await bench.inspect(tokens[token]).replacement?.token
                } catch { code = error.code }
            }
            let known = issued.map { new in tokens.firstIndex { $0.copy == new.copy } ?? tokens.count }
            if let issued, known == tokens.count { tokens.append(issued) }
            let result: Result = code.map { .refused($0) } ?? known.map { .next($0) } ?? .stays
            guard result == expected else {
                throw TestFailure("\(description): at \(at) ms token \(number) got \(result), not \(expected)")
            }
        }
        let isReused = events.contains { if case .use(_, .refused(.sessionTokenReused)) = $0.1 { true } else { false } }
        guard bench.reused.value == (isReused ? [login.session] : []),
            bench.revoked.value.count == (isReused ? 1 : 0)
        else { throw TestFailure("\(description): reported \(bench.reused.value)") }
    }

    package static let all: [CookieCase] = [
        CookieCase(
            "a token stays until it is due",
            [(0, .use(0, .stays)), (899_999, .use(0, .stays)), (900_000, .use(0, .next(1)))]),
        CookieCase(
            "lost responses never end a session",
            [
                (900_000, .use(0, .next(1))), (900_001, .use(0, .next(1))), (5_000_000, .use(0, .next(1))),
                (100_000_000, .use(0, .next(1))), (100_000_001, .use(1, .stays)), (100_030_000, .use(0, .next(1))),
            ]),
        CookieCase(
            "the grace period begins with the first use of the next token",
            [
                (900_000, .use(0, .next(1))), (7_000_000, .use(1, .stays)), (7_029_999, .use(0, .next(1))),
                (7_030_000, .use(0, .refused(.sessionTokenReused))), (7_030_000, .use(1, .refused(.sessionUnknown))),
            ]),
        CookieCase(
            "later uses do not extend the grace period",
            [
                (900_000, .use(0, .next(1))), (901_000, .use(1, .stays)), (925_000, .use(1, .stays)),
                (931_000, .use(0, .refused(.sessionTokenReused))),
            ]),
        CookieCase(
            "a token ages from its first use",
            [
                (900_000, .use(0, .next(1))), (5_000_000, .use(1, .stays)), (5_899_999, .use(1, .stays)),
                (5_900_000, .use(1, .next(2))), (5_900_001, .use(2, .stays)), (5_930_000, .use(1, .next(2))),
            ]),
        CookieCase(
            "only the session's token is offered", access: .seconds(20),
            [
                (20_000, .use(0, .next(1))), (21_000, .use(1, .stays)), (41_000, .use(1, .next(2))),
                (41_001, .use(0, .stays)), (50_999, .use(0, .stays)), (50_999, .use(1, .next(2))),
                (51_000, .use(0, .refused(.sessionTokenReused))),
            ]),
        CookieCase(
            "without a grace period a token ends with the first use of the next", grace: .zero,
            [
                (900_000, .use(0, .next(1))), (950_000, .use(0, .next(1))), (950_001, .use(1, .stays)),
                (950_001, .use(0, .refused(.sessionTokenReused))),
            ]),
        CookieCase(
            "inspecting changes nothing",
            [
                (900_000, .inspect(0, .stays)), (900_000, .use(0, .next(1))), (900_001, .inspect(1, .stays)),
                (990_000, .inspect(0, .stays)), (990_000, .use(0, .next(1))), (1_000_000, .use(1, .stays)),
                (1_030_000, .inspect(0, .refused(.sessionTokenReused))), (1_030_000, .use(1, .stays)),
            ]),
        CookieCase(
            "a privilege change replaces the token immediately",
            [
                (10_000, .reissue(0, .next(1))), (39_999, .use(0, .stays)), (39_999, .use(1, .stays)),
                (40_000, .use(0, .refused(.sessionTokenReused))), (40_000, .use(1, .refused(.sessionUnknown))),
            ]),
        CookieCase(
            "the token of a privilege change waits for its first use",
            [(10_000, .reissue(0, .next(1))), (9_000_000, .use(1, .stays)), (9_900_000, .use(1, .next(2)))]),
        CookieCase(
            "a privilege change by a token that was just replaced",
            [
                (900_000, .use(0, .next(1))), (901_000, .reissue(0, .next(2))), (902_000, .use(0, .stays)),
                (902_000, .use(1, .stays)), (903_000, .use(2, .stays)), (930_999, .use(1, .stays)),
                (931_000, .use(1, .refused(.sessionTokenReused))),
            ]),
        CookieCase(
            "no privilege change by a token that one has replaced",
            [
                (10_000, .reissue(0, .next(1))), (11_000, .reissue(0, .refused(.sessionTokenExpired))),
                (12_000, .use(1, .stays)), (12_000, .reissue(1, .next(2))), (12_000, .use(2, .stays)),
            ]),
        CookieCase(
            "a privilege change without a grace period", grace: .zero,
            [(10_000, .reissue(0, .next(1))), (10_000, .use(1, .stays)), (900_000, .use(1, .stays))]),
        CookieCase(
            "the session ends by itself",
            [
                (140_000_000, .use(0, .next(1))), (199_999_999, .use(0, .next(1))),
                (200_000_000, .use(0, .refused(.sessionUnknown))),
                (200_000_000, .use(1, .refused(.sessionUnknown))),
            ]),
        CookieCase(
            "the session ends when it is not used", [(150_000_000, .use(0, .refused(.sessionUnknown)))]),
    ]
}
