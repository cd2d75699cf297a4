import MartletCore
import MartletFetch
import MartletTraffic
import Testing

@testable import MartletUpstreams

/// Which copies are sent, and where.
@Suite struct `Copies that are sent` {
    private static func target(
        _ ports: [UInt16], upstream: String = "shadow", configure: (inout MirrorTarget) -> Void = { _ in }
    ) -> MirrorTarget {
        var target = MirrorTarget(upstream)
        target.endpoints = ports.map { port in
            MirrorTarget.Endpoint(
                EndpointLink(.tcp(address: "127.0.0.1", port: port), tls: nil, version: .http1), host: "h:\(port)")
        }
        configure(&target)
        return target
    }

    private static func book(_ target: MirrorTarget) -> MirrorBook {
        var book = MirrorBook()
        book.adopt([target])
        return book
    }

    /// The host of the endpoint that a copy is sent to, or what else is done.
    private func begin(_ book: inout MirrorBook) -> String {
        switch book.begin("shadow") {
        case .send(let endpoint, _): endpoint.host
        case .drop: "drop"
        case .fail: "fail"
        }
    }

    private func hosts(_ book: inout MirrorBook, _ count: Int) -> [String: Int] {
        var found: [String: Int] = [:]
        for _ in 0..<count {
            let host = begin(&book)
            found[host, default: 0] += 1
            if host.hasPrefix("h:") { book.finish("shadow", isSent: true) }
        }
        return found
    }

    @Test func `are divided by weight`() {
        var book = Self.book(Self.target([1, 2]) { $0.endpoints[0].weight = 3 })
        #expect(hosts(&book, 40) == ["h:1": 30, "h:2": 10])
        #expect(book.counts == ["shadow": counts(sent: 40)])
    }

    private func counts(sent: Int = 0, failed: Int = 0, dropped: Int = 0) -> MirrorCounts {
        var counts = MirrorCounts()
        (counts.sent, counts.failed, counts.dropped) = (sent, failed, dropped)
        return counts
    }

    @Test func `avoid endpoints that are out, unhealthy or for later`() {
        typealias Condition = EndpointCandidate.Condition
        func hosts(_ conditions: [Condition], backup: Int? = nil, weight: Int = 1) -> [String: Int] {
            var book = Self.book(
                Self.target([1, 2]) { target in
                    for (index, condition) in conditions.enumerated() { target.endpoints[index].condition = condition }
                    if let backup { target.endpoints[backup].isBackup = true }
                    target.endpoints[1].weight = weight
                })
            return self.hosts(&book, 4)
        }
        #expect(hosts([.healthy, .unhealthy]) == ["h:1": 4])
        #expect(hosts([.drained, .healthy]) == ["h:2": 4])
        #expect(hosts([.healthy, .healthy], backup: 0) == ["h:2": 4])
        #expect(hosts([.healthy, .unhealthy], backup: 0) == ["h:1": 4])
        #expect(hosts([.healthy, .healthy], weight: 0) == ["h:1": 4])
        #expect(hosts([.drained, .drained]) == ["fail": 4])
        #expect(hosts([.drained, .unhealthy]) == ["h:2": 4])
    }

    @Test func `fail without an endpoint, or for an upstream that is no target any more`() {
        var book = Self.book(Self.target([]))
        let first = begin(&book)
        #expect(first == "fail" && book.counts == ["shadow": counts(failed: 1)])
        book.adopt([])
        let second = begin(&book)
        #expect(second == "fail" && book.counts.isEmpty && book.isEmpty)
    }

    @Test func `are 64 at most, and others are dropped`() {
        var book = Self.book(Self.target([1]))
        let first = (0..<64).map { _ in begin(&book) }
        #expect(first.allSatisfy { $0 == "h:1" })
        let (next, collects) = (begin(&book), book.collect(for: "shadow"))
        #expect(next == "drop" && !collects && book.counts == ["shadow": counts(dropped: 2)])
        // Replacing the upstreams changes nothing about what is under way.
        book.adopt([Self.target([1])])
        let adopted = begin(&book)
        book.finish("shadow", isSent: false)
        let last = begin(&book)
        #expect(adopted == "drop" && last == "h:1" && book.counts == ["shadow": counts(failed: 1, dropped: 3)])
    }

    @Test func `of one upstream take nothing from another`() {
        let targets = [Self.target([1], upstream: "slow"), Self.target([2], upstream: "other")]
        var book = MirrorBook()
        book.adopt(targets)
        func sent(_ upstream: String) -> Bool {
            if case .send = book.begin(upstream) { true } else { false }
        }
        let first = (0..<65).map { _ in sent("slow") }
        #expect(first == Array(repeating: true, count: 64) + [false])
        let (other, collected, full) = (sent("other"), book.collect(for: "other"), book.collect(for: "slow"))
        #expect(other && collected && !full)
        // An upstream that has left and come back starts anew.
        book.adopt([targets[1]])
        book.adopt(targets)
        book.finish("slow", isSent: true)
        book.release("slow")
        let again = (0..<65).map { _ in sent("slow") }
        #expect(again.filter(\.self).count == 64)
    }

    @Test func `have bodies of which 256 at most arrive at the same time`() {
        var book = Self.book(Self.target([1]))
        let first = (0..<256).map { _ in book.collect(for: "shadow") }
        let next = book.collect(for: "shadow")
        book.release("shadow")
        let last = book.collect(for: "shadow")
        #expect(first.allSatisfy { $0 } && !next && last && book.counts == ["shadow": counts(dropped: 1)])
    }
}
