import MartletCore
import MartletIO
import Testing

@testable import MartletUpstreams

private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
private let request = NameRequest(NameQuestion(host: "api.test", family: .any), refresh: .seconds(30))

private func endpoints(_ literals: [String]) -> [SocketEndpoint] {
    literals.compactMap { SocketEndpoint(literal: $0, port: 0) }
}

/// A reply in short: what is found as addresses and seconds, `-` for absent, `!` for failed, "" for not asked.
private func reply(_ ipv4: String, _ ipv6: String) -> NameReply {
    func part(_ text: String) -> NameReply.Part {
        switch text {
        case "-": return .absent("the name does not exist")
        case "!": return .failed("no name server responded in time")
        case "": return .unasked
        default:
            let words = text.split(separator: " ").map(String.init)
            let validity = words.first.flatMap(Int.init).map { Duration.seconds($0) }
            return .found(endpoints(Array(words.dropFirst())), validity: validity)
        }
    }
    return NameReply(ipv4: part(ipv4), ipv6: part(ipv6))
}

@Suite struct `When a name is looked up, and what it has` {
    /// A lookup at a second, with what is expected then.
    struct Step: Sendable {
        let second: Int
        let ipv4: String
        let ipv6: String
        /// The addresses behind it, in order.
        let addresses: [String]
        /// When the next lookup is due, in seconds from this one.
        let next: Int
        var failure: String?
        var hasLapsed = false
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let steps: [Step]

        init(_ what: String, _ steps: [Step]) { (testDescription, self.steps) = (what, steps) }
    }

    static let unknown = "the name does not exist"
    static let silence = "no name server responded in time"
    static let rows = [
        Row(
            "the TTL if it is shorter",
            [Step(second: 0, ipv4: "7 10.0.0.1", ipv6: "-", addresses: ["10.0.0.1"], next: 7)]),
        Row(
            "refresh if the TTL is longer",
            [Step(second: 0, ipv4: "1000000000 10.0.0.1", ipv6: "-", addresses: ["10.0.0.1"], next: 30)]),
        Row("at least a second", [Step(second: 0, ipv4: "0 10.0.0.1", ipv6: "-", addresses: ["10.0.0.1"], next: 1)]),
        Row(
            "the hosts file has no TTL",
            [Step(second: 0, ipv4: "? 10.0.0.1", ipv6: "-", addresses: ["10.0.0.1"], next: 30)]),
        Row(
            "IPv4 first, each sorted, without duplicates; the least TTL",
            [
                Step(
                    second: 0, ipv4: "20 10.0.0.9 10.0.0.10 9.0.0.1 10.0.0.9", ipv6: "9 fd00::2 fd00::1",
                    addresses: ["9.0.0.1", "10.0.0.9", "10.0.0.10", "fd00::1", "fd00::2"], next: 9)
            ]),
        Row(
            "an order that changes is no change",
            [
                Step(second: 0, ipv4: "9 10.0.0.1 10.0.0.2", ipv6: "", addresses: ["10.0.0.1", "10.0.0.2"], next: 9),
                Step(second: 9, ipv4: "9 10.0.0.2 10.0.0.1", ipv6: "", addresses: ["10.0.0.1", "10.0.0.2"], next: 9),
            ]),
        Row(
            "an unknown name is looked up again soon",
            [
                Step(second: 0, ipv4: "-", ipv6: "-", addresses: [], next: 5, failure: unknown),
                Step(second: 5, ipv4: "!", ipv6: "-", addresses: [], next: 5, failure: silence),
                Step(second: 10, ipv4: "60 10.0.0.1", ipv6: "-", addresses: ["10.0.0.1"], next: 30),
            ]),
        Row(
            "silence keeps addresses for ten times refresh",
            [
                Step(second: 0, ipv4: "60 10.0.0.1", ipv6: "60 fd00::1", addresses: ["10.0.0.1", "fd00::1"], next: 30),
                Step(
                    second: 30, ipv4: "!", ipv6: "!", addresses: ["10.0.0.1", "fd00::1"], next: 5, failure: silence),
                Step(
                    second: 294, ipv4: "-", ipv6: "-", addresses: ["10.0.0.1", "fd00::1"], next: 5, failure: unknown),
                Step(second: 300, ipv4: "-", ipv6: "!", addresses: [], next: 5, failure: silence, hasLapsed: true),
                Step(second: 305, ipv4: "!", ipv6: "!", addresses: [], next: 5, failure: silence),
                Step(second: 310, ipv4: "60 10.0.0.2", ipv6: "-", addresses: ["10.0.0.2"], next: 30),
            ]),
        Row(
            "a name that has lost one family has lost it",
            [
                Step(second: 0, ipv4: "60 10.0.0.1", ipv6: "60 fd00::1", addresses: ["10.0.0.1", "fd00::1"], next: 30),
                Step(second: 30, ipv4: "60 10.0.0.1", ipv6: "-", addresses: ["10.0.0.1"], next: 30),
            ]),
        Row(
            "a failure of one family keeps it",
            [
                Step(second: 0, ipv4: "60 10.0.0.1", ipv6: "60 fd00::1", addresses: ["10.0.0.1", "fd00::1"], next: 30),
                Step(second: 30, ipv4: "60 10.0.0.2", ipv6: "!", addresses: ["10.0.0.2", "fd00::1"], next: 5),
                Step(second: 294, ipv4: "60 10.0.0.2", ipv6: "!", addresses: ["10.0.0.2", "fd00::1"], next: 5),
                Step(second: 300, ipv4: "60 10.0.0.2", ipv6: "!", addresses: ["10.0.0.2"], next: 5),
            ]),
    ]

    @Test(arguments: rows) func `by what its lookups have found`(_ row: Row) throws {
        var book = NameBook()
        #expect(book.nextDue == nil)
        #expect(book.add([request], at: start) == [request])
        for step in row.steps {
            let now = start + .seconds(step.second)
            let (first, second, third) = (book.beginDue(at: now), book.beginDue(at: now), book.begin(request))
            #expect(first == [request] && second.isEmpty && !third && book.nextDue == nil)
            let before = book.addresses(of: request)
            let result = book.finish(request, reply(step.ipv4, step.ipv6), at: now, random: 0)
            let change = try #require(result)
            #expect(book.addresses(of: request) == endpoints(step.addresses))
            #expect(change.hasChanged == (before != endpoints(step.addresses)))
            #expect(change.failure == step.failure && change.hasLapsed == step.hasLapsed && change.excess == nil)
            #expect(book.nextDue == now + .seconds(step.next))
        }
    }

    @Test(arguments: [(0.0, 30_000), (0.5, 28_500), (1.0, 27_000), (-3.0, 30_000), (9.0, 27_000)])
    func `the interval is shortened a little at random`(_ random: Double, milliseconds: Int) {
        var book = NameBook()
        _ = book.add([request], at: start)
        let isBegun = book.begin(request)
        #expect(isBegun)
        _ = book.finish(request, reply("60 10.0.0.1", ""), at: start, random: random)
        #expect(book.nextDue == start + .milliseconds(milliseconds))
        #expect(book.beginDue(at: start + .milliseconds(milliseconds)) == [request])
        _ = book.finish(request, reply("0 10.0.0.1", ""), at: start, random: random)
        #expect(book.nextDue == start + .seconds(1))
    }

    @Test func `a thousand addresses are kept`() {
        var book = NameBook()
        _ = book.add([request], at: start)
        let all = (0..<1200).map { "10.1.\($0 / 256).\($0 % 256)" }
        let reply = NameReply(ipv4: .found(endpoints(all), validity: nil), ipv6: reply("", "9 fd00::1").ipv6)
        let change = book.finish(request, reply, at: start, random: 0)
        #expect(change?.excess == 1201)
        #expect(book.addresses(of: request) == endpoints(Array(all.prefix(1000))))
    }

    @Test func `a reload keeps what is known, and looks up what is new`() {
        var book = NameBook()
        let other = NameRequest(NameQuestion(host: "b.test", family: .ipv4), refresh: .seconds(10))
        _ = book.add([request], at: start)
        _ = book.finish(request, reply("60 10.0.0.1", "-"), at: start, random: 0)
        #expect(book.add([request, other], at: start) == [other])
        #expect(book.beginDue(at: start) == [other])
        // It is in flight, and still unknown.
        #expect(book.add([other], at: start) == [other])
        let isBegunAgain = book.begin(other)
        #expect(!isBegunAgain)
        book.retain([other])
        #expect(book.addresses(of: request).isEmpty)
        #expect(book.finish(request, reply("60 10.0.0.1", "-"), at: start, random: 0) == nil)
        #expect(book.finish(other, reply("60 10.0.0.3", ""), at: start, random: 0)?.hasChanged == true)
        #expect(book.add([other], at: start).isEmpty)
        #expect(book.nextDue == start + .seconds(10))
    }
}
