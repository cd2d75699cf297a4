import MartletCore
import MartletJSON
import MartletProvider
import Testing

@testable import MartletSession

@Suite struct `Cached sessions` {
    private static func session(_ number: UInt64, _ lifetime: Duration = .seconds(5)) -> VerifiedSession {
        let identity = Identity(
            providerSubject: "s", issuer: "i", claims: [:], authTime: UnixTime(seconds: 1_000_000_000),
            issuedAt: UnixTime(seconds: 1_000_000_000), expiresAt: UnixTime(seconds: 4_000_000_000))
        return VerifiedSession(
            principal: Principal(identity: identity, provider: "p", sessionID: "x"), number: number,
            cacheLifetime: lifetime)
    }

    private static func time(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func `are found until they expire`() {
        var table = SessionCacheTable(limit: 10)
        table.store(Self.session(1), for: [1], at: Self.time(10), epoch: table.epoch)
        #expect(table.find([1], at: Self.time(10))?.number == 1)
        #expect(table.find([1], at: Self.time(14))?.cacheLifetime == .seconds(1))
        #expect(table.find([1], at: Self.time(15)) == nil)
        #expect(table.find([2], at: Self.time(10)) == nil)
        table.store(Self.session(2, .zero), for: [2], at: Self.time(10), epoch: table.epoch)
        #expect(table.find([2], at: Self.time(10)) == nil)
    }

    @Test func `are removed by revocations, and not stored by lookups that began earlier`() {
        var table = SessionCacheTable(limit: 10)
        for number in UInt64(1)...2 {
            table.store(Self.session(number), for: [UInt8(number)], at: Self.time(10), epoch: table.epoch)
        }
        let before = table.epoch
        table.drop([1])
        #expect(table.find([1], at: Self.time(10)) == nil && table.find([2], at: Self.time(10)) != nil)
        table.store(Self.session(1), for: [1], at: Self.time(10), epoch: before)
        #expect(table.find([1], at: Self.time(10)) == nil)
    }

    @Test func `are stored though another session ended during the lookup`() {
        var table = SessionCacheTable(limit: 10)
        let before = table.epoch
        table.drop([7])
        table.store(Self.session(1), for: [1], at: Self.time(10), epoch: before)
        #expect(table.find([1], at: Self.time(10)) != nil)
        table.store(Self.session(7), for: [7], at: Self.time(10), epoch: before)
        #expect(table.find([7], at: Self.time(10)) == nil)
        table.remove([1])
        #expect(table.find([1], at: Self.time(10)) == nil)
    }

    @Test func `are not used if they were looked up before the recorded ends`() {
        var table = SessionCacheTable(limit: 10, recordedEnds: 100)
        let before = table.epoch
        table.store(Self.session(6), for: [6], at: Self.time(10), epoch: before)
        for number in UInt64(1000)..<1200 { table.drop([number]) }
        #expect(table.find([6], at: Self.time(10)) != nil)
        table.drop([7])
        #expect(table.find([6], at: Self.time(10)) == nil)
        table.store(Self.session(7), for: [7], at: Self.time(10), epoch: before)
        #expect(table.find([7], at: Self.time(10)) == nil)
        table.store(Self.session(7), for: [7], at: Self.time(10), epoch: table.epoch)
        #expect(table.find([7], at: Self.time(10)) != nil)
    }

    @Test func `are bounded, and expired ones are removed`() {
        var table = SessionCacheTable(limit: 10)
        for number in UInt8(0)..<100 {
            table.store(Self.session(UInt64(number)), for: [number], at: Self.time(10), epoch: table.epoch)
            #expect(table.count <= 10)
        }
        #expect(table.find([99], at: Self.time(11)) != nil)
        table.store(Self.session(200), for: [200], at: Self.time(60), epoch: table.epoch)
        #expect(table.count == 1)
    }
}
