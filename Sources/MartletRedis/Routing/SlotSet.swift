/// Some of a cluster's slots, a bit for each: the first map and each failover move thousands of them.
struct SlotSet: Sendable, Equatable {
    private var words = [UInt64](repeating: 0, count: Int(HashSlot.count) / UInt64.bitWidth)

    init() {}

    var isEmpty: Bool { words.allSatisfy { $0 == 0 } }
    var count: Int { words.reduce(0) { $0 + $1.nonzeroBitCount } }

    func contains(_ slot: HashSlot) -> Bool {
        let (word, bit) = SlotSet.position(of: slot)
        return words[word] & bit != 0
    }

    mutating func insert(_ slot: HashSlot) {
        let (word, bit) = SlotSet.position(of: slot)
        words[word] |= bit
    }

    mutating func formUnion(_ other: SlotSet) {
        for index in words.indices { words[index] |= other.words[index] }
    }

    mutating func removeAll(where isRemoved: (HashSlot) -> Bool) {
        for index in words.indices {
            var rest = words[index]
            while rest != 0 {
                let bit = rest & (0 &- rest)
                rest ^= bit
                let slot = HashSlot(UInt16(index * UInt64.bitWidth + bit.trailingZeroBitCount))
                if isRemoved(slot) { words[index] ^= bit }
            }
        }
    }

    private static func position(of slot: HashSlot) -> (word: Int, bit: UInt64) {
        let number = Int(slot.number)
        return (number / UInt64.bitWidth, 1 << UInt64(number % UInt64.bitWidth))
    }
}

extension SlotSet: ExpressibleByArrayLiteral {
    init(arrayLiteral slots: HashSlot...) { for slot in slots { insert(slot) } }
}
