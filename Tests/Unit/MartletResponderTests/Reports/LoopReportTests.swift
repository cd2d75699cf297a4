import MartletResponder
import Testing

@Suite struct LoopReportTests {
    @Test func `cached decisions are added up`() {
        var sum = LoopReport.Tokens()
        for factor in [1, 10] {
            var loop = LoopReport.Tokens()
            (loop.hits, loop.misses, loop.entries) = (factor, 2 * factor, 3 * factor)
            sum.add(loop)
        }
        #expect([sum.hits, sum.misses, sum.entries] == [11, 22, 33])
    }

    @Test func `connections are added up, and rejections by reason`() {
        var sum = LoopReport.Connections()
        for (factor, rejections) in [(1, ["a": 1, "b": 2]), (10, ["b": 3, "c": 4])] {
            var loop = LoopReport.Connections()
            (loop.open, loop.accepted, loop.refused, loop.displaced) = (factor, 2 * factor, 3 * factor, 4 * factor)
            loop.proxyHeaderRejections = rejections
            sum.add(loop)
        }
        #expect([sum.open, sum.accepted, sum.refused, sum.displaced] == [11, 22, 33, 44])
        #expect(sum.proxyHeaderRejections == ["a": 1, "b": 5, "c": 4])
    }

    @Test func `connections and streams of HTTP/2 are added up`() {
        var sum = LoopReport.HTTP2()
        for factor in [1, 10] {
            var loop = LoopReport.HTTP2()
            (loop.openConnections, loop.connections, loop.errors) = (factor, 2 * factor, 3 * factor)
            (loop.openStreams, loop.streams, loop.resets) = (4 * factor, 5 * factor, 6 * factor)
            sum.add(loop)
        }
        #expect([sum.openConnections, sum.connections, sum.errors] == [11, 22, 33])
        #expect([sum.openStreams, sum.streams, sum.resets] == [44, 55, 66])
    }

    @Test func `tunnels are added up, and their ends by reason`() {
        var sum = LoopReport.Tunnels()
        for (factor, ends) in [(1, ["a": 1, "b": 2]), (10, ["b": 3, "c": 4])] {
            var loop = LoopReport.Tunnels()
            (loop.open, loop.opened, loop.rejectedUpgrades) = (factor, 2 * factor, 3 * factor)
            loop.ends = ends
            sum.add(loop)
        }
        #expect([sum.open, sum.opened, sum.rejectedUpgrades] == [11, 22, 33])
        #expect(sum.ends == ["a": 1, "b": 5, "c": 4])
    }
}
