import Glibc
import Testing

@testable import MartletCommands

@Suite struct `Steps of run` {
    private func steps(_ events: RunSteps.Event...) -> [[RunSteps.Step]] {
        var steps = RunSteps()
        return events.map { steps.handle($0) }
    }

    @Test func `a signal to end drains, a second one exits immediately`() {
        #expect(
            steps(.started, .signal(.end(SIGTERM)), .signal(.end(SIGINT)))
                == [[], [.drain(signal: SIGTERM)], [.exit(status: 128 + SIGINT)]])
        #expect(steps(.started, .signal(.end(SIGTERM)), .drained).last == [.end])
    }

    @Test func `a start that fails ends with its error`() {
        #expect(steps(.startFailed) == [[.fail]])
    }

    @Test func `a signal to end during the start shuts down cleanly, whatever the start's outcome`() {
        let cancelled: [RunSteps.Step] = [.cancelStart(signal: SIGTERM)]
        #expect(steps(.signal(.end(SIGTERM)), .startFailed) == [cancelled, [.end]])
        #expect(steps(.signal(.end(SIGTERM)), .startOverdue) == [cancelled, [.end]])
        #expect(
            steps(.signal(.end(SIGTERM)), .started, .startOverdue, .drained)
                == [cancelled, [.drain(signal: 0)], [], [.end]])
        #expect(steps(.signal(.end(SIGTERM)), .signal(.end(SIGTERM))).last == [.exit(status: 128 + SIGTERM)])
    }

    @Test func `a reload or a takeover requested during the start follows it`() {
        #expect(steps(.signal(.reload), .signal(.takeOver), .started) == [[], [], [.reload, .takeOver]])
        #expect(steps(.started, .signal(.reload), .signal(.takeOver)) == [[], [.reload], [.takeOver]])
    }

    @Test func `log files are opened again in every phase`() {
        #expect(
            steps(.signal(.reopen), .started, .signal(.reopen), .signal(.end(SIGTERM)), .signal(.reopen))
                == [[.reopenFiles], [], [.reopenFiles], [.drain(signal: SIGTERM)], [.reopenFiles]])
    }

    @Test func `changed files are read while it serves, and only then`() {
        #expect(steps(.filesChanged, .started, .filesChanged) == [[], [], [.readFiles]])
        #expect(steps(.started, .signal(.end(SIGTERM)), .filesChanged).last == [])
    }

    @Test func `moved files are opened again whatever the process does`() {
        #expect(steps(.signal(.reopen), .started, .signal(.reopen)) == [[.reopenFiles], [], [.reopenFiles]])
        #expect(steps(.started, .signal(.end(SIGTERM)), .signal(.reopen)).last == [.reopenFiles])
    }

    @Test func `a process that shuts down neither reloads nor hands over`() {
        #expect(
            steps(.started, .signal(.end(SIGTERM)), .signal(.reload), .signal(.takeOver), .handedOver)
                == [[], [.drain(signal: SIGTERM)], [], [.rejectTakeOver], []])
        #expect(steps(.started, .handedOver, .signal(.end(SIGTERM))).last == [.exit(status: 128 + SIGTERM)])
    }
}
