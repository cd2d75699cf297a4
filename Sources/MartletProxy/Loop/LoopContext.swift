internal import MartletAuthenticator
internal import MartletConfig
internal import MartletDecisions
internal import MartletIO

/// What every owner of connections and exchanges uses of its loop: the configuration, clocks, deadlines, the poller,
/// other threads, logs, counters and memory. It is lent to them for each call.
struct LoopContext: ~Copyable {
    /// The current configuration.
    var snapshot: Snapshot
    let poller: Poller
    var clock: LoopClock
    var schedule: LoopSchedule
    var threads: LoopThreads
    var logs: LoopLogs
    var counters: Counters
    var overload = LoopOverload()
    var tracing = LoopTracing(nil, seeds: 1, 2)
    /// Memory of the thread, reused for every request.
    var scratch = LoopScratch()

    /// The monotonic clock, read once per batch, in nanoseconds.
    @inline(__always)
    var now: Int64 { clock.now }

    /// The wall clock, read once per batch, in seconds.
    @inline(__always)
    var unixTime: Int64 { clock.unixTime }

    /// Both of them.
    @inline(__always)
    var time: LoopTime { clock.time }

    var mailbox: Mailbox { threads.mailbox }

    var verifier: Verifier { threads.verifier }

    var debug: DebugLog { logs.debug }

    @inline(__always)
    var isDraining: Bool { schedule.isDraining }

    /// When a drain aborts what is left; `max` while serving.
    var drainDeadline: Int64 { schedule.drainDeadline }

    var receiveBuffer: ReceiveBuffer {
        @inline(__always) _read { yield scratch.receiveBuffer }
    }

    var pipes: SplicePipes {
        @inline(__always) _read { yield scratch.pipes }
        @inline(__always) _modify { yield &scratch.pipes }
    }

    /// How fast bodies have to arrive.
    var paceRules: BodyPace.Rules {
        BodyPace.Rules(
            idleTimeout: snapshot.loopTimeouts.bodyIdle, minimumRate: snapshot.limits.bodyMinimumRate)
    }
}
