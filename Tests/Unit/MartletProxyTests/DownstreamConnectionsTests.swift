import Glibc
import MartletCore
import MartletIO
import MartletProvider
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Deadlines, turns and registration of connections of clients.
@Suite struct DownstreamConnectionsTests {
    private static let second: Int64 = 1_000_000_000

    // MARK: Deadlines

    @Test func `a deadline comes due with the tick after it`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.downstreams.arm(client.downstream, at: LoopBench.start + 100_000_000, &$0.context) }
        #expect(bench.due(client.downstream) == 100)
        #expect(bench.fire(at: 111).isEmpty && bench.fire(at: 112) == ["downstream 0"])
        #expect(bench.fire(at: 113).isEmpty)
    }

    @Test func `a later deadline uses the entry of the earlier one`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams.arm(client.downstream, at: LoopBench.start + 100_000_000, &loop.context)
            loop.downstreams.arm(client.downstream, at: LoopBench.start + 200_000_000, &loop.context)
        }
        #expect(bench.due(client.downstream) == 200)
        #expect(bench.fire(at: 112) == ["downstream 0"] && bench.fire(at: 300).isEmpty)
    }

    @Test func `an earlier deadline has an entry of its own`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams.arm(client.downstream, at: LoopBench.start + 200_000_000, &loop.context)
            loop.downstreams.arm(client.downstream, at: LoopBench.start + 100_000_000, &loop.context)
            loop.downstreams.arm(client.downstream, at: .max, &loop.context)
        }
        #expect(bench.due(client.downstream) == nil)
        #expect(bench.fire(at: 112) == ["downstream 0"] && bench.fire(at: 208) == ["downstream 0"])
    }

    @Test func `the deadline of a head is not extended by its parts`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.downstreams.arm(client.downstream, at: .max, &$0.context) }
        bench.run { $0.downstreams.awaitHead(client.downstream, &$0.context) }
        bench.advance(milliseconds: 1_000)
        bench.run { $0.downstreams.awaitHead(client.downstream, &$0.context) }
        let isReceivingHead = bench.run { $0.downstreams[client.downstream].reader.isReceivingHead }
        #expect(bench.due(client.downstream) == 10_000 && isReceivingHead)
    }

    @Test func `an idle connection is kept for the idle timeout, and briefly while draining`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.advance(milliseconds: 1_000)
        bench.run { $0.downstreams.awaitRequest(client.downstream, &$0.context) }
        #expect(bench.due(client.downstream) == 76_000)
        bench.run { $0.downstreams.awaitRequest(client.downstream, since: LoopBench.start, &$0.context) }
        #expect(bench.due(client.downstream) == 75_000)
        bench.run { loop in
            _ = loop.context.schedule.drain(until: LoopBench.start + 60 * Self.second)
            loop.downstreams.awaitRequest(client.downstream, &loop.context)
        }
        #expect(bench.due(client.downstream) == 1_250)
    }

    @Test(
        arguments: [(false, .head, 11_000), (true, .handshake, 12_000)] as [(Bool, DownstreamPhase, Int64)])
    func `a connection begins with a head or a handshake`(
        _ isSecure: Bool, _ phase: DownstreamPhase, _ due: Int64
    ) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.advance(milliseconds: 1_000)
        bench.run { loop in
            loop.downstreams[client.downstream].origin.rules.isSecure = isSecure
            loop.downstreams[client.downstream].phase = .proxyHeader
            loop.downstreams.startTransport(client.downstream, &loop.context)
        }
        #expect(bench.phase(client.downstream) == phase && bench.due(client.downstream) == due)
    }

    @Test func `unsent output has a deadline and needs the poller`() throws {
        let bench = try LoopBench()
        let client = bench.openClient(registers: false)
        let before = bench.run { $0.downstreams[client.downstream].transport.isRegistered }
        bench.run { $0.downstreams.armWrite(client.downstream, &$0.context) }
        let after = bench.run { $0.downstreams[client.downstream].transport.isRegistered }
        #expect(!before && after && bench.due(client.downstream) == 30_000)
    }

    @Test func `unsent output does not replace the deadline of a probe or of a verification`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams[client.downstream].probe.isPending = true
            loop.downstreams.armWrite(client.downstream, &loop.context)
        }
        let probed = bench.due(client.downstream)
        bench.run { loop in
            loop.downstreams[client.downstream].probe.isPending = false
            loop.downstreams[client.downstream].phase = .waiting
            loop.downstreams.armWrite(client.downstream, &loop.context)
        }
        #expect(probed == 10_000 && bench.due(client.downstream) == 10_000)
    }

    @Test func `a connection that lingers has two seconds`() throws {
        let bench = try LoopBench()
        let client = bench.openClient(registers: false)
        bench.run { loop in
            loop.downstreams[client.downstream].ending.closesAfterFlush = true
            loop.downstreams[client.downstream].reader.input.append("GET")
            loop.downstreams.startLinger(client.downstream, &loop.context)
        }
        let (isRegistered, isEmpty, budget) = bench.run {
            (
                $0.downstreams[client.downstream].transport.isRegistered,
                $0.downstreams[client.downstream].reader.input.isEmpty,
                $0.downstreams[client.downstream].ending.lingerBudget
            )
        }
        #expect(bench.phase(client.downstream) == .lingering && bench.due(client.downstream) == 2_000)
        #expect(isRegistered && isEmpty && budget == ConnectionEnding.lingerBytes)
        #expect(bench.ready() == ["downstream 0"])
    }

    // MARK: Turns

    @Test func `a connection is resumed once in a turn`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.openClient(), bench.openClient())
        bench.run { loop in
            loop.downstreams.markReady(second.downstream, &loop.context)
            loop.downstreams.markReady(first.downstream, &loop.context)
            loop.downstreams.markReady(second.downstream, &loop.context)
        }
        #expect(bench.ready() == ["downstream 1", "downstream 0"])
    }

    @Test func `the frames of a connection are written once in a turn`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams.markDirty(client.downstream, &loop.context)
            loop.downstreams.markDirty(client.downstream, &loop.context)
        }
        #expect(bench.dirty() == ["downstream 0"])
    }

    @Test func `events of a handshake wait in one entry`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams.queueHandshakeEvents(client.downstream, .readable, &loop.context)
            loop.downstreams.queueHandshakeEvents(client.downstream, .writable, &loop.context)
        }
        let events = bench.run { $0.downstreams[client.downstream].handshake.queuedEvents }
        let queued = bench.run { loop in
            var queued: [Handle<DownstreamConnection>] = []
            while let entry = loop.context.threads.handshakeQueue.next(after: queued.count) {
                queued.append(entry.connection)
            }
            return queued
        }
        #expect(events == [.readable, .writable] && queued == [client.downstream])
    }

    // MARK: The poller

    @Test func `a connection is registered once`() throws {
        let bench = try LoopBench()
        let client = bench.openClient(registers: false)
        let results = bench.run { loop in
            [
                loop.downstreams.register(client.downstream, &loop.context),
                loop.downstreams.register(client.downstream, &loop.context),
            ]
        }
        client.end.send("GET")
        let tokens = bench.run { loop in
            (0..<loop.context.poller.wait(milliseconds: 0)).map { loop.context.poller.token(at: $0) }
        }
        #expect(results == [true, true] && tokens == [EventToken(downstream: client.downstream).raw])
    }

    @Test func `a registration that fails can be tried again`() throws {
        let bench = try LoopBench()
        let client = bench.openClient(registers: false)
        let results = bench.run { loop in
            let fd = loop.downstreams[client.downstream].transport.fd
            loop.downstreams[client.downstream].transport.fd = .max
            let first = loop.downstreams.register(client.downstream, &loop.context)
            loop.downstreams[client.downstream].transport.fd = fd
            return [first, loop.downstreams.register(client.downstream, &loop.context)]
        }
        #expect(results == [false, true])
    }

    // MARK: Questions

    @Test(arguments: [(0, true), (Watermark.high, true), (Watermark.high + 1, false)])
    func `a head is accepted until too much is unsent`(_ unsent: Int, _ expected: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let accepts = bench.run { loop in
            loop.downstreams[client.downstream].transport.output.append([UInt8](repeating: 7, count: unsent))
            return loop.downstreams.acceptsHead(client.downstream)
        }
        #expect(accepts == expected)
    }

    @Test func `no head is accepted after the last response`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let accepts = bench.run { loop in
            loop.downstreams[client.downstream].ending.closesAfterFlush = true
            return loop.downstreams.acceptsHead(client.downstream)
        }
        #expect(!accepts)
    }

    @Test(arguments: [(30_000, false), (29_999, true), (0, true)] as [(Int64, Bool)])
    func `a client reads if it accepted bytes within the timeout`(_ milliseconds: Int64, _ expected: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.downstreams[client.downstream].transport.lastWriteAt = LoopBench.start }
        bench.advance(milliseconds: milliseconds)
        let isReading = bench.run { $0.downstreams.isReading(client.downstream, &$0.context) }
        #expect(isReading == expected)
    }

    @Test func `the network of a client is known as long as it is connected`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let before = bench.run { $0.downstreams.network(of: client.downstream) }
        bench.run { $0.close(downstream: client.downstream) }
        let after = bench.run { $0.downstreams.network(of: client.downstream) }
        #expect(before == ClientNetwork(address: BenchAddress.client) && before != nil && after == nil)
    }

    @Test func `the local address is only determined for a listener's own handler`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let none = bench.run { $0.downstreams.localAddress(of: client.downstream) }
        let own = bench.run { loop in
            loop.downstreams[client.downstream].origin.handler = ListenerHandler { _ in .text(200, "text/plain", "") }
            return loop.downstreams.localAddress(of: client.downstream)
        }
        #expect(none == nil && own?.isUnix == true)
    }

    @Test func `a pipe is released once`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let counts = bench.run { loop in
            if let pipe = loop.pipes.acquire() { loop.downstreams[client.downstream].pipe = pipe }
            let before = loop.pipes.inUse
            loop.downstreams.dropPipe(of: client.downstream, &loop.context)
            loop.downstreams.dropPipe(of: client.downstream, &loop.context)
            return [before, loop.pipes.inUse]
        }
        #expect(counts == [1, 0])
    }
}
