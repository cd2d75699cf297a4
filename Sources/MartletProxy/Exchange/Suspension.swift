internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider

/// What a request waits for before it is processed, and what it keeps meanwhile.
///
/// While it waits, its head stays in the input of its connection, whose phase is `waiting`.
enum Suspension {
    case none
    /// The verification of its credential.
    case verification
    /// The check of the proof that its verified credential is bound to.
    case proof
    /// The store's decisions about limits.
    case limits(PendingLimits)
    /// Its turn, in which the message of a check by gRPC becomes its head.
    case turn

    /// What may end a wait.
    enum End {
        /// A result of the providers of an epoch.
        case verified(VerificationResult, epoch: Int)
        case decided(LimitWait)
        /// It has waited as long as it may.
        case timedOut
        /// The time of its route has passed, which is looked at where requests are routed.
        case rerouted
        case turn
    }

    /// What follows from an end.
    enum Action {
        /// The request is processed, with the result of verifying its credential if there is one.
        case process(VerificationResult?)
        case takeHead
        /// Nothing: this is not what the request waits for.
        case none
    }

    @inline(__always)
    var isNone: Bool {
        if case .none = self { true } else { false }
    }

    /// Whether it is about its credential.
    var isVerification: Bool {
        switch self {
        case .verification, .proof: true
        case .none, .limits, .turn: false
        }
    }

    /// The limits that it waits for.
    var limits: PendingLimits? {
        if case .limits(let pending) = self { pending } else { nil }
    }
}

/// What a request keeps that waits for decisions about limits.
final class PendingLimits {
    let wait: LimitWait
    /// The result of verifying its credential, which is not repeated, and its epoch; `nil` if that was cached.
    var verification: VerificationResult?
    var epoch = 0

    init(_ wait: LimitWait) { self.wait = wait }

    fileprivate func ends(with end: Suspension.End) -> Bool {
        switch end {
        case .decided(let decided): decided === wait
        case .timedOut, .rerouted: true
        case .verified, .turn: false
        }
    }
}

extension Exchange {
    /// Ends the wait of a request, if this is what it waits for.
    /// - Parameter epoch: of the providers; a result of others is void, and the credential is verified again.
    mutating func resume(_ end: Suspension.End, epoch: Int) -> Suspension.Action {
        let isProof = if case .proof = suspension { true } else { false }
        let result: VerificationResult?
        switch (suspension, end) {
        case (.verification, .verified(let made, let itsEpoch)), (.proof, .verified(let made, let itsEpoch)):
            result = checkBody(itsEpoch == epoch ? made : nil)
        case (.verification, .timedOut), (.proof, .timedOut): result = .failure(.unavailable("auth.timed_out"))
        case (.verification, .rerouted), (.proof, .rerouted): result = nil
        case (.limits(let pending), _) where pending.ends(with: end):
            record.limits.decided = pending.wait
            result = pending.epoch == epoch ? pending.verification : nil
            if result == nil, pending.verification != nil, credential.proof == .held { credential.concludeProof(nil) }
        case (.turn, .turn):
            suspension = .none
            return .takeHead
        default: return .none
        }
        suspension = .none
        // The head is parsed again, and is that of the check itself.
        request.check.remove(.isDescribed)
        if isProof { credential.concludeProof(result) }
        return .process(result)
    }

    // Not in `end`: few exchanges end while they wait.
    @inline(never)
    mutating func dropSuspension() { suspension = .none }

    /// Has a request whose caller is authorized keep the result of its verification while it waits for limits.
    @inline(never)
    mutating func keep(_ result: VerificationResult?, epoch: Int) {
        guard let pending = suspension.limits, pending.wait.needsCaller else { return }
        pending.verification = result
        pending.epoch = epoch
    }

    /// Begins what a verified credential asks for about the body.
    private mutating func checkBody(_ result: VerificationResult?) -> VerificationResult? {
        guard request.check.isEmpty else {
            // The body that the credential vouches for stays with the proxy.
            guard case .success(let verified) = result, verified.principal.identity.bodyDigest != nil else {
                return result
            }
            return .failure(.malformed("check.body_not_read"))
        }
        return bodyWatch.begin(result, hasBody: !body.framing.isEmpty).map { .failure($0) } ?? result
    }
}

extension Exchanges {
    /// Has a request wait, its head being or coming into the input of its connection.
    mutating func suspend(
        _ exchange: Handle<Exchange>, for suspension: Suspension, until deadline: Int64,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        let downstream = self[exchange].downstream
        self[exchange].suspension = suspension
        downstreams[downstream].phase = .waiting
        downstreams.arm(downstream, at: deadline, &context)
    }
}
