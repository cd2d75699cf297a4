import MartletCore
import Testing

@testable import MartletAuthenticator

@Suite struct TokenTableHashTests {
    private static let first: UInt64 = 0x0123_4567_89AB_CDEF
    private static let second: UInt64 = 0xFEDC_BA98_7654_3210

    private func hash(
        _ token: [UInt8], scope: UInt32 = 0, key: (UInt64, UInt64) = (Self.first, Self.second)
    ) -> UInt64 {
        let table = TokenTable<Int>(byteLimit: 1 << 16, key: key)
        return unsafe token.withUnsafeBufferPointer { unsafe table.hash($0, scope) }
    }

    /// So many bytes, each different from the one before.
    private func token(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) } }

    // MARK: What is hashed

    @Test(arguments: [1, 2, 8, 63, 64])
    func `every byte of a short token counts`(count: Int) {
        let original = token(count)
        var hashes: Set<UInt64> = [hash(original)]
        for index in 0..<count {
            var changed = original
            changed[index] ^= 1
            hashes.insert(hash(changed))
        }
        #expect(hashes.count == count + 1)
    }

    @Test(arguments: [65, 71, 100, 1_000])
    func `the last 64 bytes of a longer token count, and none before them`(count: Int) {
        let original = token(count)
        let expected = hash(original)
        var hashes: Set<UInt64> = [expected]
        for index in 0..<count {
            var changed = original
            changed[index] ^= 1
            let found = hash(changed)
            if index < count - 64 { #expect(found == expected) } else { hashes.insert(found) }
        }
        #expect(hashes.count == 65)
    }

    @Test func `the length counts, zero included`() {
        let hashes = Set((0...80).map { count in hash([UInt8](repeating: 0, count: count)) })
        #expect(hashes.count == 81)
    }

    @Test(arguments: [0, 5, 63, 64, 100])
    func `scope and both parts of the key count`(count: Int) {
        var hashes: Set<UInt64> = []
        for scope in [0, 1, 0x8000_0000] as [UInt32] {
            for key in [(Self.first, Self.second), (Self.first + 1, Self.second), (Self.first, Self.second + 1)] {
                hashes.insert(hash(token(count), scope: scope, key: key))
            }
        }
        #expect(hashes.count == 9)
    }

    @Test func `equal tokens have equal hashes wherever they are in memory`() {
        let bytes = [0, 0, 0] + token(100)
        #expect(hash(Array(bytes.dropFirst(3))) == hash(token(100)))
        #expect(hash(Array(bytes[3..<60])) == hash(token(57)))
    }

    @Test(arguments: [(0, true), (63, true), (64, false), (65, false)])
    func `tokens of 64 bytes and more are hashed by words`(count: Int, isShort: Bool) {
        let bytes = token(count)
        let start = Self.first ^ UInt64(count)
        let short = unsafe bytes.withUnsafeBufferPointer { token in
            unsafe TokenTable<Int>.hashShort(token, start, Self.second)
        }
        #expect((hash(bytes) == short) == isShort)
    }

    @Test func `the hash of an empty token depends on the key alone`() {
        // Computed independently.
        #expect(hash([]) == 0x4991_26E9_7F8F_AC37)
    }

    // MARK: Folding

    private static let products: [(UInt64, UInt64, UInt64)] = [
        (0, 0, 0), (0, .max, 0), (1, 7, 7), (.max, 1, .max), (3, 5, 15),
        // The upper half of the product, and both halves.
        (0x1_0000_0000, 0x1_0000_0000, 1), (0x8000_0000_0000_0000, 2, 1),
        (0x8000_0000_0000_0000, 3, 0x8000_0000_0000_0001), (.max, 2, .max),
        (.max, .max, .max),
    ]

    @Test(arguments: products)
    func `both halves of the product are folded into one word`(left: UInt64, right: UInt64, expected: UInt64) {
        #expect(KeyedHash.fold(left, right) == expected && KeyedHash.fold(right, left) == expected)
    }
}

@Suite struct TokenTableLimitsTests {
    /// The index of the entry, or −1.
    private func insert(
        _ table: inout TokenTable<Int>, _ token: [UInt8], attachment: [UInt8] = [], weight: Int = 0, _ value: Int
    ) -> Int32 {
        unsafe token.withUnsafeBufferPointer { token in
            unsafe attachment.withUnsafeBufferPointer { attachment in
                unsafe table.insert(
                    token, scope: 0, expires: 100, now: 0, attachment: attachment, payload: value, weight: weight)
            }
        }
    }

    private func find(_ table: inout TokenTable<Int>, _ token: [UInt8]) -> Int? {
        unsafe token.withUnsafeBufferPointer { token in
            unsafe table.find(token, scope: 0, now: 0).flatMap { table.payload($0) }
        }
    }

    @Test func `tokens with equal hashes have entries of their own`() {
        var table = TokenTable<Int>(byteLimit: 1 << 16, key: (1, 2))
        let tail = [UInt8](repeating: 0x61, count: 64)
        let tokens = (0..<20).map { [UInt8($0)] + tail }
        for (value, token) in tokens.enumerated() { _ = insert(&table, token, value) }
        let found = tokens.compactMap { find(&table, $0) }
        let unknown = find(&table, [20] + tail)
        let count = table.count
        #expect(found == Array(0..<20) && unknown == nil && count == 20)
    }

    @Test func `an entry may use an eighth of the table`() {
        var table = TokenTable<Int>(byteLimit: 8 * 1_024, key: (1, 2))
        let largest = insert(&table, [UInt8](repeating: 1, count: 1_024), 1)
        let larger = insert(&table, [UInt8](repeating: 2, count: 1_025), 2)
        let attached = insert(&table, [3], attachment: [UInt8](repeating: 0, count: 1_023), 3)
        let tooMuch = insert(&table, [4], attachment: [UInt8](repeating: 0, count: 1_024), 4)
        let heavy = insert(&table, [5], weight: 1_024, 5)
        let tooHeavy = insert(&table, [6], weight: 1_025, 6)
        let count = table.count
        #expect(largest >= 0 && attached >= 0 && heavy >= 0)
        #expect(larger == -1 && tooMuch == -1 && tooHeavy == -1 && count == 3)
    }

    @Test func `an empty token and a negative weight are not cached`() {
        var table = TokenTable<Int>(byteLimit: 8 * 1_024, key: (1, 2))
        let indices = [insert(&table, [], 1), insert(&table, [1], weight: -1, 2)]
        let (count, found) = (table.count, find(&table, []))
        #expect(indices == [-1, -1] && count == 0 && found == nil)
    }

    @Test func `the index of a removed entry is used again, and others have no payload`() {
        var table = TokenTable<Int>(byteLimit: 8 * 1_024, key: (1, 2))
        let indices = [insert(&table, [1], 1), insert(&table, [2], 2)]
        table.removeAll { $0 == 1 }
        let removed = table.payload(0)
        let reused = insert(&table, [3], 3)
        let payloads = [Int32(-1), 0, 1, 2, .max].map { table.payload($0) }
        #expect(indices == [0, 1] && removed == nil && reused == 0 && payloads == [nil, 3, 2, nil, nil])
    }

    @Test func `an index without an entry has no attachment`() {
        var table = TokenTable<Int>(byteLimit: 8 * 1_024, key: (1, 2))
        let own = insert(&table, [1, 2], attachment: [3, 4, 5], 1)
        let attached = unsafe Array(table.attachment(own))
        let others = [Int32(-1), 1, .max].map { unsafe Array(table.attachment($0)) }
        #expect(attached == [3, 4, 5] && others == [[], [], []])
    }
}
