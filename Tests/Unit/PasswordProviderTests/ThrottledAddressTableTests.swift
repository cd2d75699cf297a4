import MartletCore
import MartletProvider
import Testing

@testable import PasswordProvider

@Suite struct ThrottledAddressTableTests {
    private static let start = MonotonicTime(nanoseconds: 5_000_000_000)

    private func address(_ number: Int) throws -> ClientNetwork {
        let bytes = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 10, UInt8(number >> 16 & 0xFF)]
        return try #require(ClientNetwork(address: bytes + [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)]))
    }

    @Test func `knows only the addresses that were reported`() throws {
        var table = ThrottledAddressTable()
        table.insert(try address(1), until: Self.start + .seconds(60), at: Self.start)
        #expect(table.retryAfter(try address(1), at: Self.start) == .seconds(60))
        #expect(table.retryAfter(try address(2), at: Self.start) == nil)
    }

    @Test func `forgets an address after a second, or at the end of its window`() throws {
        var table = ThrottledAddressTable()
        table.insert(try address(1), until: Self.start + .seconds(60), at: Self.start)
        table.insert(try address(2), until: Self.start + .milliseconds(300), at: Self.start)
        #expect(table.retryAfter(try address(2), at: Self.start + .milliseconds(299)) == .milliseconds(1))
        #expect(table.retryAfter(try address(2), at: Self.start + .milliseconds(300)) == nil)
        #expect(table.retryAfter(try address(1), at: Self.start + .milliseconds(999)) == .milliseconds(59_001))
        #expect(table.retryAfter(try address(1), at: Self.start + .seconds(1)) == nil)
    }

    @Test func `caches a limited number of addresses, and has places again a second later`() throws {
        var table = ThrottledAddressTable()
        for number in 0...ThrottledAddressTable.capacity {
            table.insert(try address(number), until: .never, at: Self.start)
        }
        #expect(table.count == ThrottledAddressTable.capacity)
        #expect(table.retryAfter(try address(0), at: Self.start) != nil)
        #expect(table.retryAfter(try address(ThrottledAddressTable.capacity), at: Self.start) == nil)
        let later = Self.start + .seconds(1)
        table.insert(try address(ThrottledAddressTable.capacity), until: .never, at: later)
        #expect(table.count == 1)
        #expect(table.retryAfter(try address(ThrottledAddressTable.capacity), at: later) != nil)
    }
}
