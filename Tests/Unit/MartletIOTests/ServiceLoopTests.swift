import CLinux
import MartletCore
import Synchronization
import Testing

@testable import MartletIO

/// Runs `body` on the loop and returns its result.
private func onLoop<Value: Sendable>(_ loop: ServiceLoop, _ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        #expect(loop.execute { continuation.resume(returning: body()) })
    }
}

@Suite struct ServiceLoopTests {
    @Test func `runs jobs in order on its own thread`() async throws {
        let loop = try ServiceLoop(name: "test")
        let seen = Mutex<[Int]>([])
        for number in 0..<100 {
            #expect(loop.execute { seen.withLock { $0.append(loop.isInLoop ? number : -1) } })
        }
        _ = await onLoop(loop) { true }
        loop.shutdown()
        #expect(seen.withLock { $0 } == Array(0..<100))
        #expect(!loop.isInLoop)
    }

    @Test func `runs accepted jobs before it stops, and accepts none afterwards`() throws {
        let loop = try ServiceLoop(name: "test")
        let ran = Mutex(0)
        for _ in 0..<50 { #expect(loop.execute { ran.withLock { $0 += 1 } }) }
        loop.shutdown()
        loop.shutdown()
        #expect(ran.withLock { $0 } == 50)
        #expect(!loop.execute { ran.withLock { $0 += 1 } })
        #expect(ran.withLock { $0 } == 50)
    }

    @Test func `rejects jobs beyond its capacity`() async throws {
        let loop = try ServiceLoop(name: "test")
        let gate = Mutex(false)
        await withCheckedContinuation { continuation in
            _ = loop.execute {
                continuation.resume()
                while !gate.withLock({ $0 }) { sched_yield() }
            }
        }
        var accepted = 0
        while accepted < 200_000, loop.execute({}) { accepted += 1 }
        gate.withLock { $0 = true }
        loop.shutdown()
        #expect(accepted == 65_536)
    }

    @Test func `fires timers by deadline and never a cancelled one`() async throws {
        let loop = try ServiceLoop(name: "test")
        let order: [Int] = await withCheckedContinuation { continuation in
            _ = loop.execute {
                let log = LoopLog()
                _ = loop.schedule(after: .milliseconds(3)) {
                    log.entries.append(3)
                    continuation.resume(returning: log.entries)
                }
                let cancelled = loop.schedule(after: .milliseconds(2)) { log.entries.append(2) }
                _ = loop.schedule(after: .milliseconds(1)) { log.entries.append(1) }
                _ = loop.schedule(after: .zero) { log.entries.append(0) }
                cancelled.cancel()
            }
        }
        loop.shutdown()
        #expect(order == [0, 1, 3])
    }

    @Test func `notifies a handler when its descriptor is readable`() async throws {
        let loop = try ServiceLoop(name: "test")
        let pipe = try Pipe()
        let registration = LoopBound<LoopRegistration>(loop)
        let readiness: Readiness = await withCheckedContinuation { continuation in
            _ = loop.execute {
                registration.value = try? loop.register(pipe.readEnd, .readable) { readiness in
                    registration.value?.end()
                    registration.value?.end()
                    registration.value = nil
                    continuation.resume(returning: readiness)
                }
                pipe.write()
            }
        }
        loop.shutdown()
        #expect(readiness.contains(.readable))
    }

    @Test func `notifies and releases the remaining handlers when it stops`() async throws {
        let loop = try ServiceLoop(name: "test")
        let pipe = try Pipe()
        let seen = Mutex<[Readiness]>([])
        weak var held: LoopLog?
        do {
            let log = LoopLog()
            held = log
            let carried = LoopBound<LoopLog>(loop)
            _ = await onLoop(loop) { [log = UncheckedBox(log)] in
                carried.value = log.value
                return true
            }
            _ = await onLoop(loop) {
                let log = carried.value
                carried.value = nil
                _ = loop.schedule(after: .seconds(3600)) { log?.entries.append(1) }
                _ = try? loop.register(pipe.readEnd, .readable) { readiness in
                    log?.entries.append(2)
                    seen.withLock { $0.append(readiness) }
                }
                return true
            }
        }
        loop.shutdown()
        #expect(seen.withLock { $0 } == [.loopStopped])
        #expect(held == nil)
    }

    @Test func `traps when it is used from another thread`() async {
        await #expect(processExitsWith: .failure) {
            let loop = try ServiceLoop(name: "test")
            loop.preconditionInLoop()
        }
    }
}

private final class LoopLog {
    var entries: [Int] = []
}

private struct UncheckedBox<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

private final class Pipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe2(&ends, O_NONBLOCK | O_CLOEXEC) == 0 else { throw IOError("pipe2") }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    func write() {
        var byte: UInt8 = 1
        _ = unsafe CLinux.write(writeEnd, &byte, 1)
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }
}
