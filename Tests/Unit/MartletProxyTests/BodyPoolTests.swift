import MartletCore
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct BodyPoolTests {
    private static let mebibyte = 1024 * 1024
    private static let bounds = ShareBounds(.ownBodies, entries: 800, bytes: 8 * mebibyte)

    private static func owner(_ member: UInt64, in group: UInt64 = 1) -> WorkOwner {
        WorkOwner(group: group, member: member)
    }

    @Test func `an address has an eighth, a network half, and all of them what is left`() throws {
        let pool = BodyPool(Self.bounds)
        let first = try #require(BodyLease(Self.mebibyte / 2, isWhole: true, for: Self.owner(1), in: pool))
        #expect(first.grow(by: Self.mebibyte / 2, isWhole: true) && !first.grow(by: 1, isWhole: true))
        #expect(BodyLease(1, isWhole: true, for: Self.owner(1), in: pool) == nil)
        var leases = (2..<9).compactMap { BodyLease(Self.mebibyte, isWhole: true, for: Self.owner($0), in: pool) }
        #expect(leases.count == 3 && pool.bytes == 4 * Self.mebibyte)
        leases += (0..<9).compactMap { BodyLease(Self.mebibyte, isWhole: true, for: Self.owner($0, in: 2), in: pool) }
        #expect(leases.count == 5)
        #expect(BodyLease(Self.mebibyte, isWhole: true, for: Self.owner(1, in: 3), in: pool) != nil)
        leases = []
        #expect(pool.bytes == Self.mebibyte)
        withExtendedLifetime(first) {}
    }

    @Test func `bodies are counted, too`() {
        let pool = BodyPool(Self.bounds)
        let leases = (0..<200).compactMap { _ in BodyLease(1, isWhole: true, for: Self.owner(1), in: pool) }
        #expect(leases.count == 100)
        #expect(BodyLease(1, isWhole: true, for: Self.owner(2), in: pool) != nil)
    }

    @Test func `bodies that are still to come leave an eighth to those that are there`() throws {
        let pool = BodyPool(Self.bounds)
        let slow = (0..<200).compactMap { _ in BodyLease(1, isWhole: false, for: Self.owner(1), in: pool) }
        let whole = (0..<200).compactMap { _ in BodyLease(1, isWhole: true, for: Self.owner(1), in: pool) }
        #expect(slow.count == 88 && whole.count == 12)
        // A body that has begun may end.
        #expect(slow[0].grow(by: 1, isWhole: true))

        let large = try #require(BodyLease(Self.mebibyte * 7 / 8, isWhole: false, for: Self.owner(2), in: pool))
        #expect(!large.grow(by: 1, isWhole: false) && BodyLease(1, isWhole: false, for: Self.owner(2), in: pool) == nil)
        #expect(BodyLease(Self.mebibyte / 8, isWhole: true, for: Self.owner(2), in: pool) != nil)
        #expect(large.grow(by: Self.mebibyte / 8, isWhole: true))
        withExtendedLifetime(whole) {}
    }

    @Test func `a body gives its memory back when its exchange ends`() {
        let pool = BodyPool(Self.bounds)
        var body = HeldBody()
        let first = body.reserve(1000, isWhole: false, upTo: 1500, for: Self.owner(1), in: pool)
        let piece = [UInt8](repeating: 1, count: 1000)
        unsafe piece.withUnsafeBufferPointer { unsafe body.append($0, upTo: 1500) }
        let second = body.reserve(1000, isWhole: false, upTo: 1500, for: Self.owner(1), in: pool)
        #expect(first && second && pool.bytes == 1500)
        body.release()
        #expect(pool.bytes == 0)
    }
}
