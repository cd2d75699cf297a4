import MartletAuthenticator
import Testing

@testable import MartletProxy

@Suite struct SlabTests {
    private struct Element: SlabElement {
        var generation: UInt32 = 0
        var isAlive = false
        var text = ""
    }

    @Test func `a freed slot is allocated again only after it was reclaimed`() {
        var slab = Slab<Element>(capacity: 2)
        let first = slab.allocate()
        slab.free(first)
        let second = slab.allocate()
        let (count, retired) = (slab.count, slab.retiredCount)
        #expect(first.index == 0 && second.index == 1 && count == 1 && retired == 1)
        slab.reclaim()
        let third = slab.allocate()
        let (both, none) = (slab.count, slab.retiredCount)
        #expect(third.index == 0 && third != first && both == 2 && none == 0)
    }

    @Test func `free slots are allocated while others are retired`() {
        var slab = Slab<Element>(capacity: 2)
        for handle in (0..<4).map({ _ in slab.allocate() }) { slab.free(handle) }
        slab.reclaim()
        var seen: Set<Int32> = []
        for _ in 0..<4 {
            let handle = slab.allocate()
            seen.insert(handle.index)
            slab.free(handle)
        }
        let (fresh, count, retired) = (slab.allocate(), slab.count, slab.retiredCount)
        #expect(seen == [0, 1, 2, 3] && fresh.index == 4 && count == 1 && retired == 4)
        slab.reclaim()
        let again = Set((0..<5).map { _ in slab.allocate().index })
        let (all, end) = (slab.count, slab.end)
        #expect(again == [0, 1, 2, 3, 5] && all == 6 && end == 6)
    }

    @Test func `what is left of an element can be read until its slot is reclaimed`() {
        var slab = Slab<Element>()
        let handle = slab.allocate()
        slab[handle].text = "a"
        slab.free(handle)
        let (isAlive, text, isContained) = (slab[handle].isAlive, slab[handle].text, slab.contains(handle))
        #expect(!isAlive && text == "a" && !isContained)
    }

    @Test func `a stale handle frees nothing`() {
        var slab = Slab<Element>()
        let handle = slab.allocate()
        slab.free(handle)
        slab.free(handle)
        let (count, retired) = (slab.count, slab.retiredCount)
        #expect(count == 0 && retired == 1)
    }

    @Test func `a stale handle does not reach the slot's next element`() {
        var slab = Slab<Element>()
        let stale = slab.allocate()
        slab.free(stale)
        slab.reclaim()
        let next = slab.allocate()
        let (hasStale, hasNext, found) = (slab.contains(stale), slab.contains(next), slab.handle(at: next.index))
        #expect(stale.index == next.index && !hasStale && hasNext && found == next)
    }

    #if DEBUG
    @Test func `using a stale handle traps in debug builds`() async {
        await #expect(processExitsWith: .failure) {
            var slab = Slab<DownstreamConnection>()
            let stale = slab.allocate()
            slab.free(stale)
            slab.reclaim()
            _ = slab.allocate()
            slab[stale].reader.requests = 1
        }
    }
    #endif

    @Test func `using no handle traps`() async {
        await #expect(processExitsWith: .failure) {
            var slab = Slab<DownstreamConnection>()
            _ = slab.allocate()
            slab[.none].reader.requests = 1
        }
    }

    @Test func `only allocated slots have a handle`() {
        var slab = Slab<Element>()
        let handles = (0..<3).map { _ in slab.allocate() }
        slab.free(handles[1])
        let found = (Int32(-1)..<4).map { slab.handle(at: $0) }
        #expect(found == [nil, handles[0], nil, handles[2], nil])
    }

    @Test func `elements and retired slots stay where they are while the slab grows`() {
        var slab = Slab<Element>(capacity: 1)
        var handles: [Handle<Element>] = []
        for number in 0..<200 {
            let handle = slab.allocate()
            slab[handle].text = "\(number)"
            handles.append(handle)
            if number % 2 == 1 { slab.free(handle) }
        }
        let texts = handles.map { slab[$0].text }
        let (count, retired) = (slab.count, slab.retiredCount)
        #expect(texts == (0..<200).map { "\($0)" } && count == 100 && retired == 100)
        slab.reclaim()
        let again = Set((0..<100).map { _ in slab.allocate().index })
        let end = slab.end
        #expect(again == Set((0..<100).map { $0 * 2 + 1 }) && end == 200)
    }

    @Test func `the generation of a slot has 24 bits`() throws {
        var slab = Slab<Element>()
        let first = slab.allocate()
        slab[first].generation = 0xFF_FFFF
        let found = slab.handle(at: first.index)
        let last = try #require(found)
        slab.free(last)
        let (isAlive, isContained) = (slab[last].isAlive, slab.contains(last))
        slab.reclaim()
        let next = slab.allocate()
        #expect(last.generation == 0xFF_FFFF && !isAlive && !isContained && next.generation == 0)
    }
}

@Suite struct HandleTests {
    @Test func `the authenticator's ID of an exchange is its handle`() {
        let exchange = Handle<Exchange>(index: 7, generation: 0xFF_FFFE)
        #expect(Handle(ExchangeID(exchange)) == exchange)
        #expect(ExchangeID(exchange) != ExchangeID(Handle(index: 7, generation: 0xFF_FFFD)))
    }

    @Test func `a handle is one word of index and generation`() {
        let handle = Handle<Exchange>(index: 7, generation: 0xFF_FFFE)
        #expect(MemoryLayout<Handle<Exchange>>.size == 8)
        #expect(handle.index == 7 && handle.generation == 0xFF_FFFE && !handle.isNone)
        #expect(handle != Handle(index: 7, generation: 0xFF_FFFD) && handle != Handle(index: 6, generation: 0xFF_FFFE))
    }

    @Test func `no handle has a negative index`() {
        let none = Handle<Exchange>.none
        #expect(none.isNone && none.index == -1 && none == Handle(index: -1, generation: 0))
        #expect(!Handle<Exchange>(index: 0, generation: 0).isNone)
        #expect(!Handle<Exchange>(index: .max, generation: 0).isNone)
    }
}

@Suite struct EventTokenTests {
    @Test(arguments: [(0, 0), (1, 0xFF_FFFF), (Int32.max, 1)] as [(Int32, UInt32)])
    func `a token holds a handle and its kind`(index: Int32, generation: UInt32) {
        let downstream = EventToken(raw: EventToken(downstream: Handle(index: index, generation: generation)).raw)
        #expect(downstream.kind == .downstream)
        #expect(downstream.downstream == Handle(index: index, generation: generation))
        let upstream = EventToken(raw: EventToken(upstream: Handle(index: index, generation: generation)).raw)
        #expect(upstream.kind == .upstream)
        #expect(upstream.upstream == Handle(index: index, generation: generation))
    }

    @Test func `a generation does not reach into the kind`() {
        let token = EventToken(downstream: Handle(index: 3, generation: 0x0100_0002))
        #expect(token.kind == .downstream && token.downstream == Handle(index: 3, generation: 2))
    }

    @Test func `the mailbox and listeners have tokens`() {
        #expect(EventToken.mailbox.kind == .mailbox)
        #expect(EventToken(listener: 12).kind == .listener && EventToken(listener: 12).listener == 12)
        #expect(EventToken(raw: .max).kind == nil)
    }
}
