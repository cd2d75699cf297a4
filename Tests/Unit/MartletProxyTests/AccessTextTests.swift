import MartletCore
import Synchronization
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct AccessKeyTests {
    private func key(
        route: Int32 = 1, endpoint: Int32 = 2, status: Int = 200, reason: Int32 = 3, provider: Int32 = 4, epoch: Int = 5
    ) -> AccessKey {
        AccessKey(route: route, endpoint: endpoint, status: status, reason: reason, provider: provider, epoch: epoch)
    }

    @Test func `two keys are equal only if all their indices are`() {
        let others = [
            key(route: 2), key(endpoint: 1), key(status: 201), key(reason: 4), key(provider: 3), key(epoch: 6),
            key(route: -1), key(endpoint: -1), key(provider: -1), key(route: 2, endpoint: 1),
            key(reason: 4, provider: 3), key(provider: 5, epoch: 4), key(status: 3, reason: 200),
        ]
        #expect(key() == key())
        for (index, other) in others.enumerated() {
            #expect(other != key(), "key \(index)")
            for later in others[(index + 1)...] { #expect(other != later, "key \(index)") }
        }
    }

    @Test func `a key has its status, and one of 64 slots`() {
        var used: Set<Int> = []
        for number in Int32(-1)..<2000 {
            let one = key(route: number, endpoint: number % 7, status: Int(number), reason: number % 3)
            #expect(one.status == Int(number) && (0..<64).contains(one.slot))
            used.insert(one.slot)
        }
        #expect(used.count == 64)
    }

    @Test func `extreme indices have a slot, too`() {
        for number in [Int32.min, -1, 0, .max] {
            let one = key(route: number, endpoint: number, reason: number, provider: number, epoch: Int.max)
            #expect((0..<64).contains(one.slot))
        }
    }
}

@Suite struct AccessTextsTests {
    private func key(_ route: Int32, status: Int = 200) -> AccessKey {
        AccessKey(route: route, endpoint: 0, status: status, reason: 0, provider: 0, epoch: 0)
    }

    private func store(
        _ key: AccessKey, in texts: inout AccessTexts, route: String = "api", reason: String = "ok",
        member: String = "", provider: String = "apple", upstream: String = "http://u", _ format: AccessFormat = .text
    ) {
        texts.store(
            key, route: Array(route.utf8), reason: Array(reason.utf8), member: Array(member.utf8),
            condition: [], provider: Array(provider.utf8), upstream: Array(upstream.utf8), format)
    }

    private func text(of key: AccessKey, in texts: borrowing AccessTexts) -> String {
        unsafe String(decoding: texts.text(of: key), as: UTF8.self)
    }

    @Test func `texts of a JSON record stand between the path and the first number`() {
        var texts = AccessTexts()
        store(key(1), in: &texts, .json)
        let plain = text(of: key(1), in: texts)
        #expect(
            plain == #"","route":"api","status":200,"reason":"ok","provider":"apple","#
                + #""upstream":"http://u","bytes_in":"#)
        store(key(1), in: &texts, reason: "request.body_invalid", member: "email", provider: "", upstream: "", .json)
        let member = text(of: key(1), in: texts)
        #expect(
            member == #"","route":"api","status":200,"reason":"request.body_invalid","member":"email","#
                + #""provider":"","upstream":"","bytes_in":"#)
    }

    @Test func `texts of a text record have no provider`() {
        var texts = AccessTexts()
        store(key(1, status: 503), in: &texts)
        let plain = text(of: key(1, status: 503), in: texts)
        #expect(plain == " 503 ok route=api upstream=http://u ")
        store(key(1, status: 503), in: &texts, route: "-", reason: "a.b", member: "c", upstream: "")
        let member = text(of: key(1, status: 503), in: texts)
        #expect(member == " 503 a.b member=c route=- upstream= ")
    }

    @Test func `nothing is cached at first`() {
        let texts = AccessTexts()
        for number in Int32(-1)..<200 {
            let isCached = texts.contains(key(number))
            #expect(!isCached)
        }
    }

    @Test func `a key replaces the one in its slot, and no other`() throws {
        let first = key(0)
        let next = (Int32(1)...).lazy.map { key($0) }.first { $0.slot == first.slot }
        let second = try #require(next)
        let found = (Int32(1)...).lazy.map { key($0) }.first { $0.slot != first.slot }
        let other = try #require(found)
        var texts = AccessTexts()
        store(first, in: &texts, route: "first")
        store(other, in: &texts, route: "other")
        let before = [texts.contains(first), texts.contains(second), texts.contains(other)]
        store(second, in: &texts, route: "second")
        let after = [texts.contains(first), texts.contains(second), texts.contains(other)]
        let (own, others) = (text(of: second, in: texts), text(of: other, in: texts))
        #expect(before == [true, false, true] && after == [false, true, true])
        #expect(own == " 200 ok route=second upstream=http://u " && others == " 200 ok route=other upstream=http://u ")
    }
}

@Suite struct AccessLogBatchTests {
    private final class Sink: AccessLogging {
        let format = AccessFormat.text
        private let batches = Mutex<[Int]>([])

        /// The length of each batch.
        var sizes: [Int] { batches.withLock { $0 } }

        func take(_ lines: inout ByteBuffer) {
            let count = lines.count
            lines.removeAll()
            batches.withLock { $0.append(count) }
        }
    }

    /// Writes a record whose path has so many bytes.
    private func write(_ count: Int, to writer: inout AccessLogWriter) {
        let key = AccessKey(route: 0, endpoint: -1, status: 200, reason: 0, provider: -1, epoch: writer.epoch)
        if !writer.isPrepared(for: key) {
            writer.prepare(key, route: Array("r".utf8), reason: Array("ok".utf8), provider: [], upstream: [])
        }
        let path = [UInt8](repeating: 0x61, count: count)
        let text = Array("x".utf8)
        var request = RequestTexts()
        let client = AddressText("unix".utf8)
        unsafe text.withUnsafeBufferPointer { text in
            unsafe request.begin(requestID: text, client: client)
            unsafe request.add(method: text, host: text)
        }
        unsafe path.withUnsafeBufferPointer { unsafe request.set(path: $0) }
        writer.append(AccessLine(unixTime: 1, bytesIn: 0, bytesOut: 0, microseconds: 0), &request, key)
    }

    /// What a line has besides its path: "1 unix x x", " 200 ok route=r upstream= ", "0us id=x" and a line feed.
    private static let overhead = 10 + 26 + 9

    @Test func `a batch is handed over when the loop is idle, or fifty milliseconds after the last one`() {
        let sink = Sink()
        var writer = AccessLogWriter(sink)
        let times: [(now: Int64, isIdle: Bool, handedOver: Int)] = [
            (0, false, 0), (49_999_999, false, 0), (50_000_000, false, 1), (99_999_999, false, 1),
            (100_000_000, false, 2), (100_000_001, true, 3), (150_000_000, false, 3), (150_000_001, false, 4),
        ]
        for row in times {
            write(1, to: &writer)
            writer.flush(now: row.now, isIdle: row.isIdle)
            #expect(sink.sizes.count == row.handedOver, "at \(row.now)")
        }
        let lengths = sink.sizes.map { $0 / (Self.overhead + 1) }
        #expect(lengths == [3, 2, 1, 2] && sink.sizes.reduce(0, +) == 8 * (Self.overhead + 1))
        let isEmpty = writer.isEmpty
        #expect(isEmpty)
    }

    @Test func `an empty batch is not handed over`() {
        let sink = Sink()
        var writer = AccessLogWriter(sink)
        writer.flush(now: 1_000_000_000, isIdle: true)
        #expect(sink.sizes == [])
        // It does not count as the last one either.
        write(1, to: &writer)
        writer.flush(now: 1_000_000_001, isIdle: false)
        #expect(sink.sizes.count == 1)
    }

    @Test(arguments: [(64 * 1024 - 1, 0), (64 * 1024, 1), (64 * 1024 + 1, 1)])
    func `a batch of 64 KiB is handed over immediately`(_ length: Int, _ batches: Int) {
        let sink = Sink()
        var writer = AccessLogWriter(sink)
        write(length - Self.overhead, to: &writer)
        writer.flush(now: 0, isIdle: false)
        #expect(sink.sizes == (batches == 0 ? [] : [length]))
    }

    @Test func `a key that was prepared under another epoch has to be prepared again`() {
        var writer = AccessLogWriter(Sink())
        write(1, to: &writer)
        let former = AccessKey(route: 0, endpoint: -1, status: 200, reason: 0, provider: -1, epoch: 0)
        let before = writer.isPrepared(for: former)
        writer.formatChanged()
        let current = AccessKey(route: 0, endpoint: -1, status: 200, reason: 0, provider: -1, epoch: writer.epoch)
        let after = writer.isPrepared(for: current)
        #expect(before && !after && former != current)
    }
}
