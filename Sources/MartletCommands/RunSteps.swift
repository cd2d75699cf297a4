private import CLinux
internal import MartletDecisions

/// The state machine of `martlet run`: events in, steps out, without I/O and clocks.
struct RunSteps {
    enum Event: Equatable {
        case signal(Signals.Signal)
        case started
        case startFailed
        /// A cancelled start did not end in time.
        case startOverdue
        case handedOver
        case drained
        case filesChanged
    }

    enum Step: Equatable {
        case reload
        /// Reads the files that the configuration names again, with the same configuration text.
        case readFiles
        case reopenFiles
        case takeOver
        case rejectTakeOver
        /// Cancels the start and waits for it briefly.
        case cancelStart(signal: Int32)
        case drain(signal: Int32)
        case end
        case fail
        case exit(status: Int32)
    }

    private enum Phase { case starting, cancelling, serving, draining }

    private var phase = Phase.starting
    /// Requested before the gateway served.
    private var isReloadWanted = false
    private var isTakeOverWanted = false

    mutating func handle(_ event: Event) -> [Step] {
        switch (event, phase) {
        case (.signal(.end(let number)), .starting):
            phase = .cancelling
            return [.cancelStart(signal: number)]
        case (.signal(.end(let number)), .serving):
            phase = .draining
            return [.drain(signal: number)]
        case (.signal(.end(let number)), .cancelling), (.signal(.end(let number)), .draining):
            return [.exit(status: 128 + number)]
        case (.signal(.reload), .starting): isReloadWanted = true
        case (.signal(.reload), .serving): return [.reload]
        case (.signal(.reopen), _): return [.reopenFiles]
        case (.signal(.takeOver), .starting): isTakeOverWanted = true
        case (.signal(.takeOver), .serving): return [.takeOver]
        case (.signal(.takeOver), .cancelling), (.signal(.takeOver), .draining): return [.rejectTakeOver]
        case (.filesChanged, .serving): return [.readFiles]
        case (.started, .starting):
            phase = .serving
            return (isReloadWanted ? [.reload] : []) + (isTakeOverWanted ? [.takeOver] : [])
        case (.started, .cancelling):
            phase = .draining
            return [.drain(signal: 0)]
        case (.startFailed, .starting): return [.fail]
        case (.startFailed, .cancelling), (.startOverdue, .cancelling), (.drained, _): return [.end]
        case (.handedOver, .serving):
            phase = .draining
            return [.drain(signal: SIGUSR2)]
        case (.filesChanged, _), (.signal(.reload), _), (.started, _), (.startFailed, _), (.startOverdue, _),
            (.handedOver, _):
            break
        }
        return []
    }
}
