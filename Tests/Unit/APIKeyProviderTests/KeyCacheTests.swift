import MartletCore
import MartletJSON
import MartletProvider
import Testing

@testable import APIKeyProvider

@Suite struct `The known keys` {
    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    private func key(_ id: String, subject: String = "s") -> APIKeyRecord {
        APIKeyRecord(
            id: id, digest: [], subject: subject, isAccount: false, claims: [:], scopes: [],
            createdAt: UnixTime(seconds: 0), expiresAt: nil)
    }

    private func changes(_ version: Int64, _ keys: [APIKeyRecord] = [], isComplete: Bool = true) -> APIKeyChanges {
        APIKeyChanges(version: version, keys: keys, isComplete: isComplete)
    }

    /// A cache that follows the store since second 0.
    private func cache(_ limits: KeyCache.Limits = KeyCache.Limits()) -> KeyCache {
        var cache = KeyCache(maximumStale: .seconds(30), limits: limits)
        _ = cache.apply(changes(7), asked: at(0))
        return cache
    }

    /// The result as a text: the subject of a known key with the seconds for which it may be reused.
    private func find(_ cache: inout KeyCache, _ id: String, at seconds: Int64) -> String {
        switch cache.find(id, at: at(seconds)) {
        case .known(let record, let reusable): "\(record.subject) \(reusable.wholeSeconds)"
        case .unknown: "unknown"
        case .ask: "ask"
        case .stale: "stale"
        }
    }

    private func learn(_ cache: inout KeyCache, _ id: String, _ record: APIKeyRecord?, at seconds: Int64 = 1) {
        guard case .ask(let lookup) = cache.find(id, at: at(seconds)) else { return }
        _ = cache.add(record, for: id, lookup, at: at(seconds))
    }

    @Test func `are relied on for a while after the last response`() {
        var cache = cache()
        #expect(find(&cache, "a", at: 1) == "ask")
        learn(&cache, "a", key("a"))
        #expect(find(&cache, "a", at: 2) == "s 28")
        #expect(find(&cache, "a", at: 29) == "s 1" && !cache.isStale(at: at(29)))
        #expect(find(&cache, "a", at: 30) == "stale" && cache.isStale(at: at(30)))
        #expect(find(&cache, "b", at: 30) == "stale")
        _ = cache.apply(changes(7), asked: at(40))
        #expect(find(&cache, "a", at: 41) == "s 29")
    }

    @Test func `are asked for each time before the store is followed, and not cached`() {
        var cache = KeyCache(maximumStale: .seconds(30))
        #expect(!cache.isStale(at: at(0)))
        learn(&cache, "a", key("a"))
        #expect(find(&cache, "a", at: 1) == "ask")
        cache.failed()
        #expect(find(&cache, "a", at: 1) == "stale")
    }

    @Test func `follow changes, and only what is known is replaced`() {
        var cache = cache()
        learn(&cache, "a", key("a"))
        let effect = cache.apply(changes(9, [key("a", subject: "t"), key("b")]), asked: at(2))
        #expect(effect.changed.map(\.id) == ["a", "b"] && !effect.isReset)
        #expect(find(&cache, "a", at: 3) == "t 29" && find(&cache, "b", at: 3) == "ask")
        #expect(cache.version == 9 && cache.count == 1)
    }

    @Test func `are not what was read before a change`() {
        var cache = cache()
        guard case .ask(let lookup) = cache.find("a", at: at(1)) else {
            Issue.record("known")
            return
        }
        _ = cache.apply(changes(8, [key("a", subject: "t")]), asked: at(2))
        #expect(cache.add(key("a"), for: "a", lookup, at: at(2)) == .zero)
        #expect(find(&cache, "a", at: 2) == "ask")
    }

    @Test func `stay stale until all pages of changes were read`() {
        var cache = cache()
        _ = cache.apply(changes(8, [key("a")], isComplete: false), asked: at(20))
        #expect(find(&cache, "a", at: 31) == "stale")
        _ = cache.apply(changes(9, [key("b")]), asked: at(31))
        #expect(find(&cache, "a", at: 32) == "ask")
    }

    @Test func `are forgotten when the store was restored`() {
        var cache = cache()
        learn(&cache, "a", key("a"))
        learn(&cache, "b", nil)
        #expect(cache.apply(changes(6), asked: at(2)).isReset)
        #expect(find(&cache, "a", at: 3) == "ask" && find(&cache, "b", at: 3) == "ask" && cache.version == 6)
    }

    @Test func `ids without a key are cached for seconds, or until there is one`() {
        var cache = cache()
        learn(&cache, "a", nil)
        learn(&cache, "b", nil)
        #expect(find(&cache, "a", at: 5) == "unknown")
        #expect(find(&cache, "a", at: 6) == "ask")
        _ = cache.apply(changes(8, [key("b")]), asked: at(2))
        #expect(find(&cache, "b", at: 3) == "ask")
    }

    @Test func `are not pushed out by made-up ids`() {
        var cache = cache(KeyCache.Limits(keys: 2, unknown: 4))
        learn(&cache, "a", key("a"))
        for index in 0..<100 { learn(&cache, "made up \(index)", nil) }
        #expect(find(&cache, "a", at: 2) == "s 28")
        #expect(find(&cache, "made up 99", at: 2) == "unknown" && find(&cache, "made up 1", at: 2) == "ask")
        for id in ["b", "c"] { learn(&cache, id, key(id)) }
        #expect(find(&cache, "a", at: 2) == "ask" && cache.count == 2)
    }

    @Test func `uses are taken once, the latest of each key, up to a limit`() {
        var cache = cache(KeyCache.Limits(keys: 2))
        for (id, seconds) in [("a", 5), ("b", 1), ("a", 3), ("c", 9), ("b", 2)] as [(String, Int64)] {
            cache.noteUse(of: id, at: UnixTime(seconds: seconds))
        }
        let uses = cache.takeUses().sorted { $0.id < $1.id }
        #expect(uses.map(\.id) == ["a", "b"] && uses.map(\.at.seconds) == [5, 2])
        #expect(cache.takeUses().isEmpty)
    }
}
