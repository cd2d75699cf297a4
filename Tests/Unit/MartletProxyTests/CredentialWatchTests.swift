import MartletCore
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct CredentialWatchTests {
    @Test func `exchanges are checked once per interval, if there are any`() {
        var watch = CredentialWatch()
        let interval = CredentialWatch.interval
        let checks = [
            watch.begin(exchanges: 0, at: 9 * interval), watch.begin(exchanges: 1, at: 9 * interval),
            watch.begin(exchanges: 1, at: 10 * interval - 1), watch.begin(exchanges: 1, at: 10 * interval),
        ]
        #expect(checks == [false, true, false, true])
    }

    @Test func `a revocation is not delayed`() {
        var watch = CredentialWatch()
        let now = 9 * CredentialWatch.interval
        _ = watch.begin(exchanges: 1, at: now)
        watch.checkSoon()
        let isDue = watch.begin(exchanges: 1, at: now)
        #expect(isDue)
    }

    @Test func `the loop wakes up for checks while there are exchanges`() {
        #expect(CredentialWatch.wait(exchanges: 0) == 1000)
        #expect(CredentialWatch.wait(exchanges: 1) == 200)
    }

    @Test func `an exchange is long after seven tenths of a second`() {
        #expect(!CredentialWatch.isLong(since: 5, at: CredentialWatch.minimumAge + 4))
        #expect(CredentialWatch.isLong(since: 5, at: CredentialWatch.minimumAge + 5))
    }
}

@Suite struct CredentialTerminationTests {
    private static let now: Int64 = 100 * CredentialWatch.minimumAge

    private func action(_ change: (inout CredentialTermination.Progress) -> Void) -> CredentialTermination.Action {
        var termination = CredentialTermination()
        termination.credentialEnded(isRevoked: false, grace: 0, at: Self.now)
        var progress = CredentialTermination.Progress(hasResponseStarted: true)
        change(&progress)
        return termination.action(for: progress, at: Self.now)
    }

    @Test func `an exchange outlives its credential by the grace period`() {
        var termination = CredentialTermination()
        let before = termination.action(for: CredentialTermination.Progress(isTunnel: true), at: .max - 1)
        termination.credentialEnded(isRevoked: false, grace: 10, at: Self.now)
        let early = termination.action(for: CredentialTermination.Progress(isTunnel: true), at: Self.now + 9)
        let due = termination.action(for: CredentialTermination.Progress(isTunnel: true), at: Self.now + 10)
        #expect(before == .wait && early == .wait && due == .closeTunnel)
    }

    @Test func `a tunnel is closed once`() {
        var termination = CredentialTermination()
        termination.credentialEnded(isRevoked: true, grace: 0, at: Self.now)
        let tunnel = CredentialTermination.Progress(isTunnel: true, started: Self.now)
        let actions = (0..<2).map { _ in termination.action(for: tunnel, at: Self.now) }
        #expect(actions == [.closeTunnel, .wait] && termination.deadline == .max)
    }

    @Test func `a long response is cut off, and a long upload is rejected`() {
        let response = action { _ in }
        #expect(response == .fail)
        let upload = action { exchange in
            exchange.hasResponseStarted = false
            exchange.isRequestComplete = false
        }
        #expect(upload == .fail)
    }

    @Test func `a complete request that waits for its response is left alone`() {
        let waiting = action { $0.hasResponseStarted = false }
        #expect(waiting == .wait)
    }

    @Test func `a short exchange is allowed to finish, and checked again`() {
        var termination = CredentialTermination()
        termination.credentialEnded(isRevoked: false, grace: 0, at: Self.now)
        let progress = CredentialTermination.Progress(hasResponseStarted: true, started: Self.now)
        let early = termination.action(for: progress, at: Self.now + CredentialWatch.minimumAge - 1)
        let due = termination.action(for: progress, at: Self.now + CredentialWatch.minimumAge)
        #expect(early == .wait && due == .fail)
    }

    @Test func `a gRPC call ends with a status once its response has started`() {
        for isRequestComplete in [true, false] {
            let call = action { exchange in
                exchange.isGRPC = true
                exchange.isRequestComplete = isRequestComplete
            }
            #expect(call == .endCall)
        }
        let waiting = action { exchange in
            exchange.isGRPC = true
            exchange.isRequestComplete = false
            exchange.hasResponseStarted = false
        }
        #expect(waiting == .fail)
    }

    @Test(arguments: [(true, "auth.credential_revoked"), (false, "auth.credential_expired")])
    func `the reason says why the credential has ended`(isRevoked: Bool, reason: String) {
        var termination = CredentialTermination()
        termination.credentialEnded(isRevoked: isRevoked, grace: 0, at: 0)
        #expect(termination.closeReason.reason?.rawValue == reason && termination.isRevoked == isRevoked)
    }
}

@Suite struct RouteReevaluationTests {
    private func evaluate(
        grace: Int64? = 5, allowsTunnels: Bool = true, isBound: Bool = true, isAnonymous: Bool = false,
        isUpgrade: Bool = false
    ) -> RouteReevaluation {
        RouteReevaluation(
            grace.map { RouteReevaluation.Route(expiryGrace: $0, allowsTunnels: allowsTunnels) }, isBound: isBound,
            isAnonymous: isAnonymous, isUpgrade: isUpgrade)
    }

    @Test func `without a route an exchange ends`() {
        #expect(evaluate(grace: nil) == .ends(grace: nil))
        #expect(evaluate(grace: nil, isBound: false) == .ends(grace: 0))
        #expect(evaluate(grace: nil, isBound: false, isAnonymous: true) == .ends(grace: 0))
    }

    @Test func `a route may let exchanges outlive their credentials`() {
        #expect(evaluate(grace: -1) == .stays)
        #expect(evaluate(grace: -1, allowsTunnels: false, isAnonymous: true, isUpgrade: true) == .stays)
    }

    @Test func `an exchange that was not bound to its credential stays`() {
        #expect(evaluate(isBound: false) == .stays)
    }

    @Test func `otherwise the credential decides, with the grace period of the new route`() {
        #expect(evaluate() == .dependsOnCredential(grace: 5))
        #expect(evaluate(grace: 0, isBound: false, isAnonymous: true) == .dependsOnCredential(grace: 0))
        #expect(evaluate(isUpgrade: true) == .dependsOnCredential(grace: 5))
        #expect(evaluate(allowsTunnels: false) == .dependsOnCredential(grace: 5))
    }

    @Test func `a tunnel ends where none is allowed`() {
        #expect(evaluate(allowsTunnels: false, isUpgrade: true) == .ends(grace: 5))
    }
}
