import Testing

@testable import MartletAuthenticator

@Suite struct TokenTableTests {
    private func with<Result>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        let bytes = Array(text.utf8)
        return unsafe bytes.withUnsafeBufferPointer { unsafe body($0) }
    }

    private func insert(
        _ table: inout TokenTable<Int>, _ token: String, scope: UInt32 = 0, expires: Int64 = 100, now: Int64 = 0,
        weight: Int = 0, _ value: Int
    ) {
        _ = unsafe with(token) { bytes in
            unsafe table.insert(
                bytes, scope: scope, expires: expires, now: now,
                attachment: UnsafeBufferPointer(start: nil, count: 0), payload: value, weight: weight)
        }
    }

    private func find(_ table: inout TokenTable<Int>, _ token: String, scope: UInt32 = 0, now: Int64 = 0) -> Int? {
        unsafe with(token) { bytes in unsafe table.find(bytes, scope: scope, now: now).flatMap { table.payload($0) } }
    }

    @Test func `finds an entry by token, scope and time only`() {
        var table = TokenTable<Int>(byteLimit: 1 << 20, key: (1, 2))
        insert(&table, "one", 1)
        #expect(find(&table, "one") == 1)
        #expect(find(&table, "one", scope: 1) == nil)
        #expect(find(&table, "onf") == nil)
        #expect(find(&table, "one", now: 99) == 1)
        #expect(find(&table, "one", now: 100) == nil)
    }

    @Test func `a second insert replaces the first`() {
        var table = TokenTable<Int>(byteLimit: 1 << 20, key: (1, 2))
        insert(&table, "one", 1)
        insert(&table, "one", 2)
        #expect(find(&table, "one") == 2)
        #expect(table.count == 1)
    }

    @Test func `attachments are returned completely`() throws {
        var table = TokenTable<Int>(byteLimit: 1 << 20, key: (1, 2))
        let found = unsafe with("token") { token in
            _ = unsafe with("attached") { bytes in
                unsafe table.insert(token, scope: 0, expires: 1, now: 0, attachment: bytes, payload: 0)
            }
            return unsafe table.find(token, scope: 0, now: 0)
        }
        #expect(unsafe Array(table.attachment(try #require(found))) == Array("attached".utf8))
    }

    @Test func `a token is returned as long as its index is still its own`() {
        var table = TokenTable<Int>(byteLimit: 1 << 20, key: (1, 2))
        let empty = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        let slot = unsafe with("token") {
            unsafe table.insert($0, scope: 0, expires: 1, now: 0, attachment: empty, payload: 7)
        }
        let own = unsafe table.token(slot, if: { $0 == 7 }).map { unsafe Array($0) }
        #expect(own == Array("token".utf8))
        #expect(unsafe table.token(slot, if: { $0 == 8 }) == nil)
        #expect(unsafe table.token(-1, if: { _ in true }) == nil)
        table.removeAll()
        #expect(unsafe table.token(slot, if: { _ in true }) == nil)
    }

    @Test func `stays within its byte limit and keeps recently used entries`() {
        var table = TokenTable<Int>(byteLimit: 8 * 1024, key: (3, 4))
        for number in 0..<5000 {
            insert(&table, "token-\(number)", number)
            #expect(find(&table, "token-\(number)") == number)
        }
        #expect(table.count < 1000)
        let survivors = (0..<5000).count { (number: Int) in find(&table, "token-\(number)") == number }
        #expect(survivors == table.count)
    }

    @Test func `counts the weight of payloads`() {
        var table = TokenTable<Int>(byteLimit: 8 * 1024, key: (3, 4))
        for number in 0..<100 { insert(&table, "token-\(number)", weight: 1000, number) }
        #expect(table.count == 8)
        table.removeAll()
        for number in 0..<100 { insert(&table, "token-\(number)", number) }
        #expect(table.count == 100)
    }

    @Test func `does not keep expired entries`() {
        var table = TokenTable<Int>(byteLimit: 1 << 20, key: (5, 6))
        for number in 0..<10_000 {
            insert(&table, "token-\(number)", expires: Int64(number) + 10, now: Int64(number), number)
            #expect(find(&table, "token-\(number)", now: Int64(number)) == number)
        }
        #expect(table.count <= 128)
    }

    @Test func `removes everything`() {
        var table = TokenTable<Int>(byteLimit: 1 << 20, key: (1, 2))
        for number in 0..<1000 { insert(&table, "t\(number)", number) }
        table.removeAll()
        #expect(table.count == 0)
        #expect((0..<1000).allSatisfy { find(&table, "t\($0)") == nil })
    }

    @Test func `removes matching entries and finds the rest`() {
        var table = TokenTable<Int>(byteLimit: 1 << 20, key: (1, 2))
        for number in 0..<1000 { insert(&table, "t\(number)", number) }
        table.removeAll { $0 % 3 == 0 }
        #expect((0..<1000).allSatisfy { (find(&table, "t\($0)") == nil) == ($0 % 3 == 0) })
        #expect(table.count == 666)
    }

    @Test func `behaves like a dictionary under random insertions and removals`() {
        var table = TokenTable<Int>(byteLimit: 1 << 24, key: (7, 8))
        var model: [String: Int] = [:]
        var state: UInt64 = 1
        for step in 0..<6000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let number = Int(state >> 33) % 700
            // Short ones, and ones whose last 64 bytes are the same.
            let token = number % 2 == 0 ? "t\(number)" : "\(number)" + String(repeating: "s", count: 64 + number % 9)
            insert(&table, token, step)
            model[token] = step
            if step % 500 == 499 {
                table.removeAll { $0 % 3 == step % 3 }
                model = model.filter { $0.value % 3 != step % 3 }
            }
        }
        #expect(table.count == model.count)
        for (token, value) in model { #expect(find(&table, token) == value) }
        for number in 0..<700 where model["t\(number)"] == nil { #expect(find(&table, "t\(number)") == nil) }
    }
}
