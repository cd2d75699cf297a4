import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletProvider
import Testing

@testable import MartletDecisions
@testable import MartletDecisionsTesting
@testable import MartletProxy

/// What a waiting request does with what may end its wait.
@Suite struct SuspensionTests {
    private static let epoch = 3

    private static var verified: VerificationResult {
        let now = UnixTime(seconds: 1)
        let identity = Identity(
            providerSubject: "s", issuer: "i", authTime: now, issuedAt: now, expiresAt: UnixTime(seconds: 9))
        return .success(VerifiedPrincipal(Principal(identity: identity, provider: "p", sessionID: nil)))
    }

    /// What follows: processed with a result (`+`), with an error (`-`), without either (`0`), `head`, or nothing (`.`).
    private func text(_ action: Suspension.Action) -> String {
        switch action {
        case .process(.success): "+"
        case .process(.failure): "-"
        case .process(nil): "0"
        case .takeHead: "head"
        case .none: "."
        }
    }

    private func wait(needsCaller: Bool = false) throws -> LimitWait {
        let bench = try LoopBench { $0.limit("some", [.address], RequestRate(count: 1, perSeconds: 1), burst: 1) }
        let plan = bench.run { $0.context.snapshot.routeLimits.plans[0] }
        return LimitWait(plan, 0..<1, needsCaller: needsCaller, LimitDecisions(), missing: 1) { _ in }
    }

    /// Of each wait: verified, verified by replaced providers, failed, its limits decided, others', timed out, rerouted,
    /// its turn.
    @Test(
        arguments: [
            ("none", ". . . . . . . ."),
            ("verification", "+ 0 - . . - 0 ."),
            ("proof", "+ 0 - . . - 0 ."),
            ("limits", ". . . 0 . 0 0 ."),
            ("turn", ". . . . . . . head"),
        ])
    func `a wait ends by what it is for`(_ name: String, _ expected: String) throws {
        let (own, other) = (try wait(), try wait())
        let suspension: Suspension =
            switch name {
            case "verification": .verification
            case "proof": .proof
            case "limits": .limits(PendingLimits(own))
            case "turn": .turn
            default: .none
            }
        let ends: [Suspension.End] = [
            .verified(Self.verified, epoch: Self.epoch), .verified(Self.verified, epoch: Self.epoch - 1),
            .verified(.failure(.rejected("test.rejected")), epoch: Self.epoch),
            .decided(own), .decided(other), .timedOut, .rerouted, .turn,
        ]
        let actions = ends.map { end in
            var exchange = Exchange()
            exchange.suspension = suspension
            let action = text(exchange.resume(end, epoch: Self.epoch))
            #expect(exchange.suspension.isNone == (action != "." || name == "none"))
            return action
        }
        #expect(actions.joined(separator: " ") == expected)
    }

    @Test(arguments: [(true, false, ProofState.held), (false, false, .failed), (true, true, .none)])
    func `a proof is concluded by its own result`(
        _ holds: Bool, _ isOfReplacedProviders: Bool, _ expected: ProofState
    ) {
        var exchange = Exchange()
        exchange.suspension = .proof
        let result = holds ? Self.verified : .failure(.rejected("test.rejected"))
        let epoch = Self.epoch - (isOfReplacedProviders ? 1 : 0)
        _ = exchange.resume(.verified(result, epoch: epoch), epoch: Self.epoch)
        #expect(exchange.credential.proof == expected)
    }

    /// Whether the limits need the caller, the epoch of the result, whether it is there later, and the proof then.
    @Test(
        arguments: [
            (true, 3, "+", ProofState.held), (true, 2, "0", .none), (false, 3, "0", .held),
        ])
    func `a verification is not repeated after the limits`(
        _ needsCaller: Bool, _ epoch: Int, _ expected: String, _ proof: ProofState
    ) throws {
        let wait = try wait(needsCaller: needsCaller)
        var exchange = Exchange()
        exchange.credential.proof = .held
        exchange.suspension = .limits(PendingLimits(wait))
        exchange.keep(Self.verified, epoch: epoch)
        let action = exchange.resume(.decided(wait), epoch: Self.epoch)
        let decided = exchange.record.limits.decided
        #expect(text(action) == expected && exchange.credential.proof == proof && decided === wait)
    }

    @Test(arguments: ["verification", "limits"])
    func `a described head is one only until the request is processed`(_ name: String) throws {
        let wait = try wait()
        var exchange = Exchange()
        exchange.request.check = [.isDescribed]
        exchange.suspension = name == "limits" ? .limits(PendingLimits(wait)) : .verification
        _ = exchange.resume(.timedOut, epoch: Self.epoch)
        #expect(!exchange.request.check.contains(.isDescribed))
    }

    @Test func `an exchange that ends waits for nothing`() throws {
        var exchange = Exchange()
        exchange.suspension = .limits(PendingLimits(try wait()))
        exchange.end()
        #expect(exchange.suspension.isNone)
    }
}
