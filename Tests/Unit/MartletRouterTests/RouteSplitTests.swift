import MartletConfig
import MartletTraffic
import Testing

@testable import MartletRouter

/// Which upstream of a route gets a caller.
@Suite struct `Splits` {
    private static func split(_ weights: [(String, Int)]) -> RouteSplit {
        RouteSplit(
            weights.enumerated().map { index, entry in
                (SplitShare(upstream: located(entry.0), weight: entry.1), index)
            })
    }

    private static let callers = (0..<10_000).map { RendezvousHash.hash("usr_\($0)".utf8) }

    private static func count(_ split: RouteSplit, _ upstream: Int) -> Int {
        callers.count { split.upstream(for: $0) == upstream }
    }

    @Test func `callers are shared by weight`() {
        #expect((9300...9700).contains(Self.count(Self.split([("api", 95), ("api-next", 5)]), 0)))
        #expect((4800...5200).contains(Self.count(Self.split([("a", 1), ("b", 1)]), 1)))
        #expect(Self.count(Self.split([("a", 7), ("b", 0)]), 0) == 10_000)
        #expect(Self.count(Self.split([("a", 0), ("b", 1)]), 1) == 10_000)
        #expect(Self.count(Self.split([("a", 3)]), 0) == 10_000)
    }

    @Test func `a growing canary keeps who is on it, and the order of the list does not matter`() {
        let steps = [0, 1, 5, 20, 50, 100].map { Self.split([("api", 100 - $0), ("api-next", $0)]) }
        let reversed = Self.split([("api-next", 20), ("api", 80)])
        for key in Self.callers {
            let upstreams = steps.map { $0.upstream(for: key) }
            #expect(upstreams == upstreams.sorted(), "\(upstreams)")
            #expect(reversed.upstream(for: key) == 1 - steps[3].upstream(for: key))
        }
    }

    @Test func `every instance decides alike`() {
        let split = Self.split([("api", 50), ("api-next", 50)])
        let chosen = (0..<16).map { split.upstream(for: RendezvousHash.hash("usr_\($0)".utf8)) }
        #expect(chosen == [0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1])
    }

    @Test func `addresses of one network are alike`() {
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2]
        #expect(RouteSplit.key(ofAddress: mapped + [1]) != RouteSplit.key(ofAddress: mapped + [2]))
        let network: [UInt8] = [0x20, 1, 0xD, 0xB8, 0, 0, 0, 1]
        let hosts = (0..<2).map { RouteSplit.key(ofAddress: network + [0, 0, 0, 0, 0, 0, 0, $0]) }
        #expect(hosts[0] == hosts[1] && hosts[0] != 0)
        #expect(RouteSplit.key(ofAddress: network.reversed() + network) != hosts[0])
        #expect(RouteSplit.key(ofAddress: []) == RouteSplit.key(ofAddress: [1, 2]))
    }

    @Test func `routes have the upstreams of their split`() throws {
        var configuration = route("a", auth: .none)
        configuration.upstream = nil
        configuration.split = [
            SplitShare(upstream: located("api"), weight: 1), SplitShare(upstream: located("web"), weight: 3),
        ]
        let compiled = try compiled([configuration, route("b", auth: .none)]).routes
        #expect(compiled[0].upstreams == [1, 0] && compiled[0].upstream == 1 && compiled[0].split != nil)
        #expect(compiled[1].upstreams == [1] && compiled[1].upstream(for: 7) == 1)
        #expect([0, 1].contains(compiled[0].upstream(for: 7)))
        configuration.split[1].upstream = located("nowhere")
        #expect(Compilation([configuration]).codes == [.configUnknownUpstream])
    }
}
