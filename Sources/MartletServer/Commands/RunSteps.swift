private import CLinux

/// What `martlet run` does next: events in, steps out; no signal and no clock inside.
struct RunSteps {
    /// What happens to the process.
    enum Event: Equatable {
        case signal(Signals.Signal)
        /// The gateway serves.
        case started
        case startFailed
        /// A start that is no longer wanted did not come to its end in time.
        case startOverdue
        /// A successor serves.
        case handedOver
        case drained
        /// Files that the configuration names are others than before.
        case filesChanged
    }

    /// What is to be done about it.
    enum Step: Equatable {
        case reload
        /// The configuration stays; the files that it names are read again.
        case readFiles
        case takeOver
        case refuseTakeOver
        /// The start is not wanted any more: it is waited for, for a moment.
        case cancelStart(signal: Int32)
        case drain(signal: Int32)
        /// The end, with 0.
        case end
        /// The end, with the error of the start.
        case fail
        /// The end, at once.
        case leave(status: Int32)
    }

    private enum Phase { case starting, cancelling, serving, draining }

    private var phase = Phase.starting
    /// Asked for before the gateway served.
    private var isReloadWanted = false
    private var isTakeOverWanted = false

    mutating func take(_ event: Event) -> [Step] {
        switch (event, phase) {
        case (.signal(.end(let number)), .starting):
            phase = .cancelling
            return [.cancelStart(signal: number)]
        case (.signal(.end(let number)), .serving):
            phase = .draining
            return [.drain(signal: number)]
        case (.signal(.end(let number)), .cancelling), (.signal(.end(let number)), .draining):
            return [.leave(status: 128 + number)]
        case (.signal(.reload), .starting): isReloadWanted = true
        case (.signal(.reload), .serving): return [.reload]
        case (.signal(.takeOver), .starting): isTakeOverWanted = true
        case (.signal(.takeOver), .serving): return [.takeOver]
        case (.signal(.takeOver), .cancelling), (.signal(.takeOver), .draining): return [.refuseTakeOver]
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
