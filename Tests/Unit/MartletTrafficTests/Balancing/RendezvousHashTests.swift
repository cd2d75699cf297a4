import MartletTraffic
import Testing

/// Which of several names gets a key.
@Suite struct `Rendezvous hashing` {
    /// The name that gets a key.
    private static func winner(of key: UInt64, _ weights: [String: Int64]) -> String? {
        weights.min { left, right in
            RendezvousHash.weightedScore(key, RendezvousHash.hash(left.key.utf8), weight: left.value)
                < RendezvousHash.weightedScore(key, RendezvousHash.hash(right.key.utf8), weight: right.value)
        }?.key
    }

    private static let keys = (0..<10_000).map { RendezvousHash.hash("user-\($0)".utf8) }

    @Test func `keys have the same hash everywhere`() {
        #expect(RendezvousHash.hash("".utf8) == 0xEFD0_1F60_BA99_2926)
        #expect(RendezvousHash.hash("a".utf8) != RendezvousHash.hash("b".utf8))
    }

    @Test func `shares are those of the weights`() {
        let weights: [String: Int64] = ["a": 3, "b": 1, "none": 0]
        let counts = Self.keys.reduce(into: [:]) { $0[Self.winner(of: $1, weights) ?? "", default: 0] += 1 }
        #expect((7300...7700).contains(counts["a"] ?? 0) && counts["none"] == nil, "\(counts)")
    }

    @Test func `a weight that grows takes keys and gives none away`() {
        for key in Self.keys {
            let before = Self.winner(of: key, ["a": 90, "b": 5, "c": 5])
            let after = Self.winner(of: key, ["a": 80, "b": 5, "c": 15])
            #expect(after == before || after == "c" || before == "a", "\(key)")
            if before == "c" { #expect(after == "c") }
        }
    }
}
