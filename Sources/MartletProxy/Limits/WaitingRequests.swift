internal import MartletAuthenticator
internal import MartletTraffic

/// Resumes requests that have waited for the store.
enum WaitingRequests {
    /// The store has decided about all limits that a request waits for.
    static func decided(_ exchange: Handle<Exchange>, _ wait: LimitWait, _ events: inout EventLoop) {
        guard events.loop.exchanges.all.contains(exchange),
            let pending = events.loop.exchanges[exchange].record.limits.waiting, pending.wait === wait
        else { return }
        resume(exchange, pending, &events)
    }

    /// A request has waited for the store as long as it may.
    static func timedOut(_ exchange: Handle<Exchange>, _ pending: PendingLimits, _ events: inout EventLoop) {
        for limit in pending.wait.plan.limits {
            guard let shared = limit.shared else { continue }
            shared.client.timedOut(at: events.loop.now)
            break
        }
        resume(exchange, pending, &events)
    }

    /// Has a request whose caller is authorized keep the result of its verification while it waits.
    static func hold(
        _ verification: BoxedVerificationResult?, of exchange: Handle<Exchange>, _ events: inout EventLoop
    ) {
        guard let pending = events.loop.exchanges[exchange].record.limits.waiting, pending.wait.needsCaller else {
            return
        }
        pending.verification = verification?.result
        pending.epoch = events.authenticator.epoch
    }

    private static func resume(_ exchange: Handle<Exchange>, _ pending: PendingLimits, _ events: inout EventLoop) {
        pending.isOver = true
        var result = pending.verification
        // As with a verification: one by a configuration that was replaced is void.
        if result != nil, pending.epoch != events.authenticator.epoch {
            result = nil
            if events.loop.exchanges[exchange].credential.proof == .held {
                events.loop.exchanges[exchange].credential.concludeProof(nil)
            }
        }
        events.resumeRequest(events.loop.exchanges[exchange].downstream, with: result)
    }
}
