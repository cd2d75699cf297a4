import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct CredentialEndTests {
    private static let second: Int64 = 1_000_000_000

    /// What happens to an exchange that started at 10 s; times in milliseconds.
    enum Step: Sendable {
        case expires(at: Int64, grace: Int64)
        case isRevoked(at: Int64, grace: Int64)
        case check(at: Int64, CredentialTermination.Action)
    }

    private func run(_ steps: [Step], on exchange: CredentialTermination.Progress) -> CredentialTermination {
        var termination = CredentialTermination()
        var exchange = exchange
        exchange.started = 10 * Self.second
        for (index, step) in steps.enumerated() {
            switch step {
            case .expires(let time, let grace):
                termination.credentialEnded(isRevoked: false, grace: grace * 1_000_000, at: time * 1_000_000)
            case .isRevoked(let time, let grace):
                termination.credentialEnded(isRevoked: true, grace: grace * 1_000_000, at: time * 1_000_000)
            case .check(let time, let expected):
                let action = termination.action(for: exchange, at: time * 1_000_000)
                #expect(action == expected, "step \(index)")
            }
        }
        return termination
    }

    @Test(
        arguments: [
            // Without an end nothing is due, however late it is.
            [.check(at: 9_000_000_000, .wait)],
            // Without a grace period it is due immediately, with one at its end.
            [.expires(at: 20_000, grace: 0), .check(at: 20_000, .fail)],
            [.expires(at: 20_000, grace: 500), .check(at: 20_499, .wait), .check(at: 20_500, .fail)],
            // A short exchange is left alone until it is a long one, and then not longer.
            [.expires(at: 10_100, grace: 0), .check(at: 10_699, .wait), .check(at: 10_700, .fail)],
            [.expires(at: 10_100, grace: 600), .check(at: 10_699, .wait), .check(at: 10_700, .fail)],
            [.expires(at: 10_100, grace: 601), .check(at: 10_700, .wait), .check(at: 10_701, .fail)],
            // A revocation without a grace period does not wait for the end of one.
            [.expires(at: 20_000, grace: 60_000), .isRevoked(at: 21_000, grace: 0), .check(at: 21_000, .fail)],
        ] as [[Step]])
    func `a long response is cut off when its time is over`(_ steps: [Step]) {
        _ = run(steps, on: CredentialTermination.Progress(hasResponseStarted: true))
    }

    @Test(
        arguments: [
            [.expires(at: 20_000, grace: 0), .check(at: 20_000, .closeTunnel), .check(at: 99_000, .wait)],
            // A tunnel is never too young.
            [.expires(at: 10_001, grace: 0), .check(at: 10_001, .closeTunnel), .check(at: 10_002, .wait)],
            [.expires(at: 20_000, grace: 500), .check(at: 20_499, .wait), .check(at: 20_500, .closeTunnel)],
        ] as [[Step]])
    func `a tunnel is closed when its time is over, once`(_ steps: [Step]) {
        _ = run(steps, on: CredentialTermination.Progress(isTunnel: true))
        // What is known of its request and response makes no difference.
        _ = run(
            steps,
            on: CredentialTermination.Progress(
                isTunnel: true, isGRPC: true, isRequestComplete: false, hasResponseStarted: true))
    }

    @Test func `every combination of a long exchange that is due`() {
        typealias Row = (isGRPC: Bool, isComplete: Bool, hasStarted: Bool, expected: CredentialTermination.Action)
        let rows: [Row] = [
            (false, true, false, .wait), (false, true, true, .fail), (false, false, false, .fail),
            (false, false, true, .fail), (true, true, false, .wait), (true, true, true, .endCall),
            (true, false, false, .fail), (true, false, true, .endCall),
        ]
        for row in rows {
            let exchange = CredentialTermination.Progress(
                isGRPC: row.isGRPC, isRequestComplete: row.isComplete, hasResponseStarted: row.hasStarted)
            _ = run([.expires(at: 20_000, grace: 0), .check(at: 20_000, row.expected)], on: exchange)
        }
    }

    @Test func `the last end of a credential is the one that counts`() {
        let revoked = run(
            [.expires(at: 20_000, grace: 9000), .isRevoked(at: 21_000, grace: 10)],
            on: CredentialTermination.Progress())
        #expect(revoked.isRevoked && revoked.deadline == 21_010_000_000 && revoked.closeReason == .revoked)
        let expired = run([.expires(at: 20_000, grace: 9000)], on: CredentialTermination.Progress())
        #expect(!expired.isRevoked && expired.deadline == 29_000_000_000 && expired.closeReason == .expired)
        let neither = CredentialTermination()
        #expect(!neither.isRevoked && neither.deadline == .max && neither.closeReason == .expired)
    }
}

@Suite struct CredentialWatchSequenceTests {
    /// What the loop does at a time, in milliseconds.
    enum Step: Sendable {
        case begin(at: Int64, exchanges: Int, isDue: Bool)
        case checkSoon
    }

    @Test(
        arguments: [
            [.begin(at: 199, exchanges: 1, isDue: false), .begin(at: 200, exchanges: 1, isDue: true)],
            [.begin(at: 1000, exchanges: 0, isDue: false), .begin(at: 1000, exchanges: 1, isDue: true)],
            [
                .begin(at: 1000, exchanges: 1, isDue: true), .begin(at: 1199, exchanges: 9, isDue: false),
                .begin(at: 1200, exchanges: 9, isDue: true), .begin(at: 1200, exchanges: 9, isDue: false),
            ],
            // A check that was not due does not delay the next one.
            [
                .begin(at: 1000, exchanges: 1, isDue: true), .begin(at: 1100, exchanges: 1, isDue: false),
                .begin(at: 1150, exchanges: 0, isDue: false), .begin(at: 1200, exchanges: 1, isDue: true),
            ],
            // A late check starts the interval anew.
            [
                .begin(at: 1000, exchanges: 1, isDue: true), .begin(at: 1999, exchanges: 1, isDue: true),
                .begin(at: 2198, exchanges: 1, isDue: false), .begin(at: 2199, exchanges: 1, isDue: true),
            ],
            [
                .begin(at: 1000, exchanges: 1, isDue: true), .checkSoon, .begin(at: 1001, exchanges: 0, isDue: false),
                .begin(at: 1001, exchanges: 1, isDue: true), .begin(at: 1002, exchanges: 1, isDue: false),
            ],
        ] as [[Step]])
    func `a check is due every fifth of a second while there are exchanges`(_ steps: [Step]) {
        var watch = CredentialWatch()
        for (index, step) in steps.enumerated() {
            switch step {
            case .begin(let time, let exchanges, let expected):
                let isDue = watch.begin(exchanges: exchanges, at: time * 1_000_000)
                #expect(isDue == expected, "step \(index)")
            case .checkSoon: watch.checkSoon()
            }
        }
    }

    @Test(arguments: [(-1, 1000), (0, 1000), (1, 200), (100_000, 200)])
    func `the loop sleeps no longer than until the next check`(_ exchanges: Int, _ expected: Int) {
        #expect(CredentialWatch.wait(exchanges: exchanges) == Int32(expected))
    }
}

@Suite struct RouteReevaluationTableTests {
    /// All outcomes for a route, as a letter for each combination: bound, anonymous, an upgrade.
    private func outcomes(_ route: RouteReevaluation.Route?) -> String {
        let letters = (0..<8).map { number in
            let evaluation = RouteReevaluation(
                route, isBound: number & 1 != 0, isAnonymous: number & 2 != 0, isUpgrade: number & 4 != 0)
            switch evaluation {
            case .stays: return "s"
            case .ends(let grace): return grace.map { $0 == 0 ? "0" : "N" } ?? "F"
            case .dependsOnCredential: return "C"
            }
        }
        return letters.joined()
    }

    @Test func `an exchange without a route ends, with its former grace period if it was bound`() {
        #expect(outcomes(nil) == "0F0F0F0F")
    }

    @Test(arguments: [Int64(-1), .min])
    func `a route without a limit changes nothing`(grace: Int64) {
        for allowsTunnels in [false, true] {
            let route = RouteReevaluation.Route(expiryGrace: grace, allowsTunnels: allowsTunnels)
            #expect(outcomes(route) == "ssssssss")
        }
    }

    @Test func `a route with a limit concerns exchanges that are bound or anonymous`() {
        #expect(outcomes(RouteReevaluation.Route(expiryGrace: 7, allowsTunnels: true)) == "sCCCsCCC")
        #expect(outcomes(RouteReevaluation.Route(expiryGrace: 7, allowsTunnels: false)) == "sCCCsNNN")
        #expect(outcomes(RouteReevaluation.Route(expiryGrace: 0, allowsTunnels: false)) == "sCCCs000")
    }

    @Test(arguments: [Int64(0), 7, .max])
    func `the grace period is that of the new route`(grace: Int64) {
        let open = RouteReevaluation.Route(expiryGrace: grace, allowsTunnels: true)
        let closed = RouteReevaluation.Route(expiryGrace: grace, allowsTunnels: false)
        let depends = RouteReevaluation(open, isBound: true, isAnonymous: false, isUpgrade: true)
        let ends = RouteReevaluation(closed, isBound: true, isAnonymous: false, isUpgrade: true)
        #expect(depends == .dependsOnCredential(grace: grace) && ends == .ends(grace: grace))
    }
}
